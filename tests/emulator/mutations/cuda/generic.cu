// Attention of 128 queries, float32: keys and values come by bulk copies and are read by ld.shared.
#include "ptx.cuh"

constexpr int kStages = 2, kKeys = 4, kDepth = 8;  // keys of a block
constexpr u32 kTileBytes = kKeys * kDepth * 4, kStageBytes = 2 * kTileBytes;
constexpr u32 kFull = kStages * kStageBytes, kEmpty = kFull + 8 * kStages;

extern "C" __global__ void __launch_bounds__(160, 1)
generic(const float* q, const float* keys, const float* values, float* o, int blocks) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 4);
    }
    FENCE_BARRIER_INIT();
  }
  __syncthreads();

  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) {
      for (int n = 0; n < blocks; ++n) {
        const int slot = n % kStages;
        const u32 stage = base + slot * kStageBytes;
        WAIT(empty + 8 * slot, (n / kStages & 1) ^ 1);
        EXPECT(full + 8 * slot, kStageBytes);
        BULK_LOAD(stage, keys + n * kKeys * kDepth, kTileBytes, full + 8 * slot);
        BULK_LOAD(stage + kTileBytes, values + n * kKeys * kDepth, kTileBytes, full + 8 * slot);
      }
    }
    return;
  }
  float query[kDepth], sum[kDepth] = {}, total = 0, highest = -1e30f;
  for (int i = 0; i < kDepth; ++i) query[i] = q[threadIdx.x * kDepth + i];
  for (int n = 0; n < blocks; ++n) {
    const int slot = n % kStages;
    const u32 stage = base + slot * kStageBytes;
    WAIT(full + 8 * slot, n / kStages & 1);
    for (int key = 0; key < kKeys; ++key) {
      float x[kDepth], score = 0, factor, weight;
      for (int i = 0; i < kDepth; i += 4) LOAD_SHARED4((x + i), stage + (key * kDepth + i) * 4);
      for (int i = 0; i < kDepth; ++i) score += query[i] * x[i];
      const float top = fmaxf(highest, score);
      EXP2(factor, highest - top);
      EXP2(weight, score - top);
      for (int i = 0; i < kDepth; i += 4) LOAD_SHARED4((x + i), stage + kTileBytes + (key * kDepth + i) * 4);
      for (int i = 0; i < kDepth; ++i) sum[i] = sum[i] * factor + weight * x[i];
      total = total * factor + weight;
      highest = top;
    }
    // reads by ld.shared before the next bulk copy into the stage
    FENCE_PROXY_ASYNC();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ARRIVE(empty + 8 * slot);
  }
  for (int i = 0; i < kDepth; ++i) o[threadIdx.x * kDepth + i] = sum[i] / total;
}
