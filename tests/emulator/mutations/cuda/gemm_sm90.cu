// C = A * B^T, bf16, persistent: a producer warp, a ring of stages, two consumer warpgroups, TMA stores.
#include "ptx.cuh"

constexpr int kStages = 3, kRows = 128, kColumns = 64, kDepth = 64;  // of a tile, and of a step along K
constexpr u32 kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2;
constexpr u32 kStageBytes = kABytes + kBBytes, kStagingBytes = 64 * kColumns * 2;
constexpr u32 kStaging = kStages * kStageBytes, kFull = kStaging + 2 * kStagingBytes, kEmpty = kFull + 8 * kStages;

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_sm90(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
          const __grid_constant__ TensorMap c, int tiles, int tiles_across, int steps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  const int warpgroup = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 2);
    }
    FENCE_BARRIER_INIT();
  }
  __syncthreads();

  if (warpgroup == 0) {
    SET_REGISTERS(dec, 40);
    if (threadIdx.x == 0) {
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
  } else {
    SET_REGISTERS(inc, 232);
    const int consumer = warpgroup - 1, thread = threadIdx.x % 128;
    const bool leader = thread == 0;
    const u32 staging = base + kStaging + consumer * kStagingBytes;
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      float d[32] = {};
      for (int step = 0; step < steps; ++step, ++n) {
        const int slot = n % kStages;
        const u32 stage = base + slot * kStageBytes;
        WAIT(full + 8 * slot, n / kStages & 1);
        WGMMA_FENCE();
        for (int k = 0; k < kDepth / 16; ++k) {
          WGMMA(d, WGMMA_OPERAND(stage + consumer * kABytes / 2 + 32 * k),
                WGMMA_OPERAND(stage + kABytes + 32 * k), step + k > 0);
        }
        WGMMA_COMMIT();
        // the product before this one is complete: its stage is free
        WGMMA_WAIT(d, 1);
        if (leader && step > 0) ARRIVE(empty + 8 * ((n - 1) % kStages));
      }
      WGMMA_WAIT(d, 0);
      if (leader) ARRIVE(empty + 8 * ((n - 1) % kStages));

      // the store of the tile before has read the staging buffer
      if (leader) STORE_WAIT_READ();
      NAMED_BARRIER(1 + consumer, 128);
      const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
      for (int i = 0; i < 32; i += 2) {
        u32 pair;
        PACK(pair, d[i], d[i + 1]);
        STORE_SHARED(staging + ((row + i / 2 % 2 * 8) * kColumns + column + i / 4 * 8) * 2, pair);
      }
      FENCE_PROXY_ASYNC();
      NAMED_BARRIER(3 + consumer, 128);
      if (leader) {
        TMA_STORE(c, tile % tiles_across * kColumns, tile / tiles_across * kRows + consumer * 64, staging);
        STORE_COMMIT();
      }
    }
    if (leader) STORE_WAIT();
  }
}
