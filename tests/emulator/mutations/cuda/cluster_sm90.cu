// C = A * B^T, bf16: two CTAs of a cluster share B; each loads half of it and sends it to both.
#include "ptx.cuh"

constexpr int kStages = 3, kRows = 64, kColumns = 64, kDepth = 64;
constexpr u32 kABytes = kRows * kDepth * 2, kBBytes = kColumns * kDepth * 2, kStageBytes = kABytes + kBBytes;
constexpr u32 kFull = kStages * kStageBytes, kEmpty = kFull + 8 * kStages;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(160, 1)
cluster_sm90(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c,
             int tiles, int steps, int row_length) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  u32 rank;
  CLUSTER_RANK(rank);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 2);
    }
    FENCE_BARRIER_INIT();
  }
  CLUSTER_SYNC();

  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) {
      int n = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        for (int step = 0; step < steps; ++step, ++n) {
          const int slot = n % kStages;
          const u32 stage = base + slot * kStageBytes;
          WAIT_CLUSTER(empty + 8 * slot, (n / kStages & 1) ^ 1);
          EXPECT(full + 8 * slot, kStageBytes);
          TMA_LOAD(stage, a, step * kDepth, blockIdx.x * kRows, full + 8 * slot);
          TMA_LOAD_MULTICAST(stage + kABytes + rank * kBBytes / 2, b, step * kDepth,
                             tile * kColumns + rank * kColumns / 2, full + 8 * slot, 3);
        }
      }
    }
    __syncwarp();
  } else {
    int n = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      float d[32] = {};
      for (int step = 0; step < steps; ++step, ++n) {
        const int slot = n % kStages;
        const u32 stage = base + slot * kStageBytes;
        WAIT(full + 8 * slot, n / kStages & 1);
        WGMMA_FENCE();
        for (int k = 0; k < kDepth / 16; ++k) {
          WGMMA(d, WGMMA_OPERAND(stage + 32 * k), WGMMA_OPERAND(stage + kABytes + 32 * k), step + k > 0);
        }
        WGMMA_COMMIT();
        WGMMA_WAIT(d, 0);
        // both producers write this stage of both CTAs
        if (threadIdx.x < 2) ARRIVE_AT(empty + 8 * slot, threadIdx.x);
      }
      const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
      for (int i = 0; i < 32; i += 2) {
        const int at = (blockIdx.x * kRows + row + i / 2 % 2 * 8) * row_length + tile * kColumns + column + i / 4 * 8;
        *reinterpret_cast<float2*>(c + at) = make_float2(d[i], d[i + 1]);
      }
    }
  }
  // no CTA leaves while the other may still write its shared memory or arrive at its barriers
  CLUSTER_SYNC();
}
