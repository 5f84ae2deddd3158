// Attention forward, depth 128, bf16, no mask, as FlashAttention-4 arranges it: two tiles of 128 queries,
// each with scores and outputs in tensor memory; the weights P take the place of the scores. Roles: two
// softmax warpgroups, one that corrects the outputs, an MMA warp, a load warp.
#include "ptx.cuh"

constexpr int kStages = 3, kRows = 128, kKeys = 128, kDepth = 128;
constexpr u32 kTileBytes = kRows * kDepth * 2, kPanelBytes = kTileBytes / 2;  // 64 columns of depth
constexpr u32 kRing = 2 * kTileBytes, kScale = kRing + kStages * kTileBytes, kBarriers = kScale + 2 * kRows * 4;
constexpr u32 kQueriesFull = kBarriers, kFull = kQueriesFull + 16, kEmpty = kFull + 8 * kStages;
constexpr u32 kScores = kEmpty + 8 * kStages, kWeights = kScores + 16, kRescaled = kWeights + 16;
constexpr u32 kOutputs = kRescaled + 16, kFactorFull = kOutputs + 16, kFactorEmpty = kFactorFull + 16;
constexpr u32 kSlot = kFactorEmpty + 16, kTmemColumns = 512, kOutputColumns = 256;
constexpr float kThreshold = 8;  // outputs are rescaled once the maximum has grown by a factor of 2^8

extern "C" __global__ void __launch_bounds__(512, 1)
attention_sm100(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap o, int blocks,
                float scale_log2) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 1);
    }
    for (int i = 0; i < 2; ++i) {
      BARRIER_INIT(base + kQueriesFull + 8 * i, 1);
      BARRIER_INIT(base + kScores + 8 * i, 1);
      BARRIER_INIT(base + kWeights + 8 * i, 128);
      BARRIER_INIT(base + kRescaled + 8 * i, 128);
      BARRIER_INIT(base + kOutputs + 8 * i, 1);
      BARRIER_INIT(base + kFactorFull + 8 * i, 128);
      BARRIER_INIT(base + kFactorEmpty + 8 * i, 128);
    }
    FENCE_BARRIER_INIT();
  }
  if (warp == 12) TMEM_ALLOC(1, base + kSlot, kTmemColumns);
  FENCE_BEFORE();
  __syncthreads();
  FENCE_AFTER();
  u32 columns;
  LOAD_SHARED_WORD(columns, base + kSlot);

  if (warp < 8) {  // softmax: a thread has one row of scores
    SET_REGISTERS(inc, 176);
    const int i = warp / 4;
    const u32 scores = columns + i * kKeys + (warp % 4 << 21), scale_at = base + kScale + threadIdx.x * 4;
    float highest = -1e30f, total = 0;
    for (int n = 0; n < blocks; ++n) {
      WAIT(base + kScores + 8 * i, n & 1);
      FENCE_AFTER();
      u32 s[4][32];
#pragma unroll
      for (int part = 0; part < 4; ++part) TMEM_LOAD(s[part], scores + part * 32);
      TMEM_WAIT_LOADS();
      float top = highest;
#pragma unroll
      for (int j = 0; j < kKeys; ++j) top = fmaxf(top, __uint_as_float(s[j / 32][j % 32]) * scale_log2);
      if (top - highest < kThreshold) top = highest;
      float factor;
      EXP2(factor, highest - top);
      highest = top;
      if (n > 0) {
        WAIT(base + kFactorEmpty + 8 * i, n - 1 & 1 ^ 1);
        STORE_SHARED(scale_at, __float_as_uint(factor));
        ARRIVE(base + kFactorFull + 8 * i);
      }
      total *= factor;
      u32 p[2][32];
#pragma unroll
      for (int j = 0; j < kKeys; j += 2) {
        float low, high;
        EXP2(low, __uint_as_float(s[j / 32][j % 32]) * scale_log2 - highest);
        EXP2(high, __uint_as_float(s[j / 32][j % 32 + 1]) * scale_log2 - highest);
        total += low + high;
        PACK(p[j / 64][j / 2 % 32], low, high);
      }
      TMEM_STORE(scores, p[0]);
      TMEM_STORE(scores + 32, p[1]);
      TMEM_WAIT_STORES();
      FENCE_BEFORE();
      ARRIVE(base + kWeights + 8 * i);
    }
    WAIT(base + kFactorEmpty + 8 * i, blocks - 1 & 1 ^ 1);
    STORE_SHARED(scale_at, __float_as_uint(1 / total));
    ARRIVE(base + kFactorFull + 8 * i);
  } else if (warp < 12) {  // correction, then the outputs
    SET_REGISTERS(dec, 88);
    for (int n = 1; n <= blocks; ++n) {
      for (int i = 0; i < 2; ++i) {
        const u32 outputs = columns + kOutputColumns + i * kDepth + (warp % 4 << 21);
        float factor;
        WAIT(base + kFactorFull + 8 * i, n - 1 & 1);
        LOAD_SHARED(factor, base + kScale + (i * kRows + thread) * 4);
        ARRIVE(base + kFactorEmpty + 8 * i);
        WAIT(base + kOutputs + 8 * i, n - 1 & 1);
        FENCE_AFTER();
        if (n < blocks) {
          if (__any_sync(0xffffffff, factor < 1)) {
            for (int part = 0; part < 4; ++part) {
              u32 x[32];
              TMEM_LOAD(x, outputs + part * 32);
              TMEM_WAIT_LOADS();
#pragma unroll
              for (int j = 0; j < 32; ++j) x[j] = __float_as_uint(__uint_as_float(x[j]) * factor);
              TMEM_STORE(outputs + part * 32, x);
            }
            TMEM_WAIT_STORES();
          }
          FENCE_BEFORE();
          ARRIVE(base + kRescaled + 8 * i);
        } else {  // into the space of the queries, whose last use is complete
          const u32 staging = base + i * kTileBytes + thread * kDepth * 2;
          for (int part = 0; part < 4; ++part) {
            u32 x[32], y[16];
            TMEM_LOAD(x, outputs + part * 32);
            TMEM_WAIT_LOADS();
#pragma unroll
            for (int j = 0; j < 16; ++j) {
              PACK(y[j], __uint_as_float(x[2 * j]) * factor, __uint_as_float(x[2 * j + 1]) * factor);
            }
#pragma unroll
            for (int j = 0; j < 16; j += 4) {
              STORE_SHARED4(staging + part * 64 + j * 4, y[j], y[j + 1], y[j + 2], y[j + 3]);
            }
          }
          FENCE_PROXY_ASYNC();
          NAMED_BARRIER(1, 128);
          if (thread == 0) {
            TMA_STORE(o, 0, (blockIdx.x * 2 + i) * kRows, base + i * kTileBytes);
            STORE_COMMIT();
          }
        }
      }
    }
    if (thread == 0) STORE_WAIT();
  } else {
    SET_REGISTERS(dec, 48);
    if (threadIdx.x == 12 * 32) {  // products
      const u32 shape = MMA_SHAPE(kRows, kKeys);
      for (int n = -1; n < blocks; ++n) {
        // the values of block n are multiplied with its weights, the keys of block n + 1 with the queries
        const int value = 2 * n + 1, value_slot = value % kStages, key = value + 1, key_slot = key % kStages;
        const u32 values = base + kRing + value_slot * kTileBytes, keys = base + kRing + key_slot * kTileBytes;
        if (n >= 0) WAIT(full + 8 * value_slot, value / kStages & 1);
        for (int i = 0; i < 2; ++i) {
          if (n >= 0) {
            WAIT(base + kWeights + 8 * i, n & 1);
            if (n > 0) WAIT(base + kRescaled + 8 * i, n - 1 & 1);
            FENCE_AFTER();
            for (int step = 0; step < kKeys / 16; ++step) {
              MMA_A_IN_TMEM(columns + kOutputColumns + i * kDepth, columns + i * kKeys + step * 8,
                            MMA_OPERAND_TRANSPOSED(values + step * 2048, kPanelBytes), shape | TRANSPOSED_B,
                            n + step > 0);
            }
            if (i == 1) COMMIT(empty + 8 * value_slot);
            COMMIT(base + kOutputs + 8 * i);  // the last one: waited for before the CTA ends
          }
          if (n + 1 < blocks) {
            if (n < 0) WAIT(base + kQueriesFull + 8 * i, 0);
            if (i == 0) WAIT(full + 8 * key_slot, key / kStages & 1);
            // scores take the place of weights: products that read them are complete
            if (n >= 0) WAIT(base + kOutputs + 8 * i, n & 1);
            FENCE_AFTER();
            for (int step = 0; step < kDepth / 16; ++step) {
              const u32 at = step / 4 * kPanelBytes + step % 4 * 32;
              MMA(columns + i * kKeys, MMA_OPERAND(base + i * kTileBytes + at), MMA_OPERAND(keys + at), shape, step > 0);
            }
            COMMIT(base + kScores + 8 * i);
            if (i == 1) COMMIT(empty + 8 * key_slot);
          }
        }
      }
    } else if (threadIdx.x == 13 * 32) {  // loads
      for (int i = 0; i < 2; ++i) {
        EXPECT(base + kQueriesFull + 8 * i, kTileBytes);
        for (int panel = 0; panel < 2; ++panel) {
          TMA_LOAD(base + i * kTileBytes + panel * kPanelBytes, q, panel * 64, (blockIdx.x * 2 + i) * kRows,
                   base + kQueriesFull + 8 * i);
        }
      }
      for (int n = 0; n < 2 * blocks; ++n) {  // keys and values of a block in turn
        const int slot = n % kStages;
        const u32 stage = base + kRing + slot * kTileBytes;
        WAIT(empty + 8 * slot, (n / kStages & 1) ^ 1);
        EXPECT(full + 8 * slot, kTileBytes);
        for (int panel = 0; panel < 2; ++panel) {
          if (n % 2 == 0) TMA_LOAD(stage + panel * kPanelBytes, k, panel * 64, n / 2 * kKeys, full + 8 * slot);
          if (n % 2 == 1) TMA_LOAD(stage + panel * kPanelBytes, v, panel * 64, n / 2 * kKeys, full + 8 * slot);
        }
      }
    }
  }
  __syncwarp();
  FENCE_BEFORE();
  __syncthreads();
  FENCE_AFTER();
  if (warp == 12) {
    TMEM_RELINQUISH(1);
    TMEM_DEALLOC(1, columns, kTmemColumns);
  }
}
