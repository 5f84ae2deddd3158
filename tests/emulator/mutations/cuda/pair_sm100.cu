// C = A * B^T, bf16: two CTAs multiply together (cta_group::2). Each loads its rows of A and half of B;
// the even one issues the products, and both hold their rows of C in tensor memory.
#include "ptx.cuh"

constexpr int kStages = 3, kRows = 128, kColumns = 64, kDepth = 64;  // rows of one CTA
constexpr u32 kABytes = kRows * kDepth * 2, kBBytes = kColumns / 2 * kDepth * 2, kStageBytes = kABytes + kBBytes;
constexpr u32 kFull = kStages * kStageBytes, kEmpty = kFull + 8 * kStages, kDone = kEmpty + 8 * kStages;
constexpr u32 kFree = kDone + 8, kSlot = kFree + 8, kEven = 0xfeffffff;  // the same address in the even CTA

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192, 1)
pair_sm100(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int tiles,
           int steps, int row_length) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const u32 base = SHARED(memory), full = base + kFull, empty = base + kEmpty;
  const u32 done = base + kDone, free = base + kFree;
  const int warp = threadIdx.x / 32;
  u32 rank;
  CLUSTER_RANK(rank);
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      BARRIER_INIT(full + 8 * slot, 1);
      BARRIER_INIT(empty + 8 * slot, 1);
    }
    BARRIER_INIT(done, 1);
    BARRIER_INIT(free, 256);
    FENCE_BARRIER_INIT();
  }
  CLUSTER_SYNC();
  if (warp == 5) TMEM_ALLOC(2, base + kSlot, kColumns);
  FENCE_BEFORE();
  CLUSTER_SYNC();
  FENCE_AFTER();
  u32 columns;
  LOAD_SHARED_WORD(columns, base + kSlot);

  if (warp == 4) {
    if (threadIdx.x == 128) {
      int n = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        for (int step = 0; step < steps; ++step, ++n) {
          const int slot = n % kStages;
          const u32 stage = base + slot * kStageBytes;
          WAIT_CLUSTER(empty + 8 * slot, (n / kStages & 1) ^ 1);
          if (rank == 0) EXPECT(full + 8 * slot, 2 * kStageBytes);
          TMA_LOAD_PAIR(stage, a, step * kDepth, blockIdx.x * kRows, full + 8 * slot & kEven);
          TMA_LOAD_PAIR(stage + kABytes, b, step * kDepth, tile * kColumns + rank * kColumns / 2,
                        full + 8 * slot & kEven);
        }
      }
      // the last commits have arrived before the CTA leaves
      for (int i = 0; i < kStages; ++i, ++n) WAIT_CLUSTER(empty + 8 * (n % kStages), (n / kStages & 1) ^ 1);
    }
  } else if (warp == 5) {
    if (threadIdx.x == 160 && rank == 0) {
      int n = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        WAIT_CLUSTER(free, (tile & 1) ^ 1);
        FENCE_AFTER();
        for (int step = 0; step < steps; ++step, ++n) {
          const int slot = n % kStages;
          const u32 stage = base + slot * kStageBytes;
          WAIT_CLUSTER(full + 8 * slot, n / kStages & 1);
          for (int k = 0; k < kDepth / 16; ++k) {
            MMA_PAIR(columns, MMA_OPERAND(stage + 32 * k), MMA_OPERAND(stage + kABytes + 32 * k),
                     MMA_SHAPE(2 * kRows, kColumns), step + k > 0);
          }
          COMMIT_PAIR(empty + 8 * slot);
        }
        COMMIT_PAIR(done);
      }
    }
  } else {
    for (int tile = 0; tile < tiles; ++tile) {
      WAIT_CLUSTER(done, tile & 1);
      FENCE_AFTER();
      u32 d[2][32];
      for (int half = 0; half < 2; ++half) TMEM_LOAD(d[half], columns + half * 32 + (warp << 21));
      TMEM_WAIT_LOADS();
      FENCE_BEFORE();
      ARRIVE_AT(free, 0);
      for (int half = 0; half < 2; ++half) {
        const int at = (blockIdx.x * kRows + threadIdx.x) * row_length + tile * kColumns + half * 32;
        for (int i = 0; i < 32; i += 4) {
          *reinterpret_cast<uint4*>(c + at + i) = make_uint4(d[half][i], d[half][i + 1], d[half][i + 2], d[half][i + 3]);
        }
      }
    }
  }
  __syncwarp();
  FENCE_BEFORE();
  // the peer's products and commits reach this CTA until here
  CLUSTER_SYNC();
  FENCE_AFTER();
  if (warp == 5) {
    TMEM_RELINQUISH(2);
    TMEM_DEALLOC(2, columns, kColumns);
  }
}
