// C = A * B^T, bf16, persistent: a TMA warp, an MMA warp, four epilogue warps, two accumulators in
// tensor memory.
#include "ptx.cuh"

constexpr int kStages = 3, kRows = 128, kColumns = 64, kDepth = 64, kAccumulators = 2;
constexpr u32 kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2, kStageBytes = kABytes + kBBytes;
constexpr u32 kStaging = kStages * kStageBytes, kFull = kStaging + kRows * kColumns * 2;
constexpr u32 kEmpty = kFull + 8 * kStages, kDone = kEmpty + 8 * kStages, kFree = kDone + 8 * kAccumulators;
constexpr u32 kSlot = kFree + 8 * kAccumulators, kTmemColumns = kAccumulators * kColumns;

extern "C" __global__ void __launch_bounds__(192, 1)
gemm_sm100(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
           const __grid_constant__ TensorMap c, int tiles, int tiles_across, int steps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  const u32 done = base + kDone, free = base + kFree;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 1);
    }
    for (int slot = 0; slot < kAccumulators; ++slot) {
      BARRIER_INIT(done + 8 * slot, 1);
      BARRIER_INIT(free + 8 * slot, 128);
    }
    FENCE_BARRIER_INIT();
  }
  if (warp == 5) TMEM_ALLOC(1, base + kSlot, kTmemColumns);
  FENCE_BEFORE();
  __syncthreads();
  FENCE_AFTER();
  u32 columns;
  LOAD_SHARED_WORD(columns, base + kSlot);

  if (warp == 4) {
    if (threadIdx.x == 128) {
      int n = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int step = 0; step < steps; ++step, ++n) {
          const int slot = n % kStages;
          const u32 stage = base + slot * kStageBytes;
          WAIT(empty + 8 * slot, (n / kStages & 1) ^ 1);
          EXPECT(full + 8 * slot, kStageBytes);
          TMA_LOAD(stage, a, step * kDepth, tile / tiles_across * kRows, full + 8 * slot);
          TMA_LOAD(stage + kABytes, b, step * kDepth, tile % tiles_across * kColumns, full + 8 * slot);
        }
      }
    }
  } else if (warp == 5) {
    if (threadIdx.x == 160) {
      int n = 0, count = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++count) {
        const int buffer = count % kAccumulators;
        WAIT(free + 8 * buffer, (count / kAccumulators & 1) ^ 1);
        FENCE_AFTER();
        for (int step = 0; step < steps; ++step, ++n) {
          const int slot = n % kStages;
          const u32 stage = base + slot * kStageBytes;
          WAIT(full + 8 * slot, n / kStages & 1);
          for (int k = 0; k < kDepth / 16; ++k) {
            MMA(columns + buffer * kColumns, MMA_OPERAND(stage + 32 * k), MMA_OPERAND(stage + kABytes + 32 * k),
                MMA_SHAPE(kRows, kColumns), step + k > 0);
          }
          COMMIT(empty + 8 * slot);
        }
        COMMIT(done + 8 * buffer);
      }
    }
  } else {
    const u32 staging = base + kStaging, row = threadIdx.x;
    int count = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++count) {
      const int buffer = count % kAccumulators;
      WAIT(done + 8 * buffer, count / kAccumulators & 1);
      FENCE_AFTER();
      u32 d[2][32];
      for (int half = 0; half < 2; ++half) {
        TMEM_LOAD(d[half], columns + buffer * kColumns + half * 32 + (warp << 21));
      }
      TMEM_WAIT_LOADS();
      FENCE_BEFORE();
      ARRIVE(free + 8 * buffer);

      // the store of the tile before has read the staging buffer
      if (threadIdx.x == 0) STORE_WAIT_READ();
      NAMED_BARRIER(1, 128);
      for (int half = 0; half < 2; ++half) {
        for (int i = 0; i < 32; i += 8) {
          u32 p[4];
          for (int j = 0; j < 4; ++j) {
            PACK(p[j], __uint_as_float(d[half][i + 2 * j]), __uint_as_float(d[half][i + 2 * j + 1]));
          }
          STORE_SHARED4(staging + (row * kColumns + half * 32 + i) * 2, p[0], p[1], p[2], p[3]);
        }
      }
      FENCE_PROXY_ASYNC();
      NAMED_BARRIER(2, 128);
      if (threadIdx.x == 0) {
        TMA_STORE(c, tile % tiles_across * kColumns, tile / tiles_across * kRows, staging);
        STORE_COMMIT();
      }
    }
    if (threadIdx.x == 0) STORE_WAIT();
  }
  __syncwarp();
  FENCE_BEFORE();
  __syncthreads();
  FENCE_AFTER();
  if (warp == 5) {
    TMEM_RELINQUISH(1);
    TMEM_DEALLOC(1, columns, kTmemColumns);
  }
}
