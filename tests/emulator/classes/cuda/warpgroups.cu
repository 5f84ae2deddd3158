// One thread of each warpgroup gives a stage back for all of it, once it has seen the products complete
// that read the stage: they cannot have begun before all four warps had issued them. In the broken twin
// it does so before.
#include "classes.cuh"

#define WGMMA8_WAIT_BUT_ONE(d) \
  asm volatile("wgmma.wait_group.sync.aligned 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory")

// The last warp loads; the warpgroups before it multiply. `leader` releases for each, right behind the
// products of a step, or (kLater) behind those of the step before. With kOneWaits one warp waits for the
// copies and meets the others at a named barrier.
template <int kStages, bool kLater, bool kOneWaits>
__device__ void release(const u32* a, float* out, int steps, int leader) {
  __shared__ __align__(128) u32 tile[kStages * 512], ones[64];
  __shared__ u64 barriers[2 * kStages];
  const u32 full = SHARED(barriers), empty = full + 8 * kStages, base = SHARED(tile);
  const u32 group = threadIdx.x / 128, groups = blockDim.x / 128;
  if (threadIdx.x < 64) STORE_SHARED(SHARED(ones) + 4 * threadIdx.x, 0x3f803f80u);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      BARRIER_INIT(full + 8 * stage, 1);
      BARRIER_INIT(empty + 8 * stage, groups);
    }
    FENCE_BARRIER_INIT();
  }
  FENCE_PROXY_ASYNC();
  __syncthreads();
  if (group == groups) {
    for (int n = 0; LANE == 0 && n < steps; ++n) {
      const int stage = n % kStages;
      WAIT(empty + 8 * stage, (n / kStages & 1) ^ 1);
      EXPECT(full + 8 * stage, 2048);
      BULK_LOAD(base + 2048 * stage, a + 512 * n, 2048, full + 8 * stage);
    }
    return;
  }
  float d[4] = {};
#pragma unroll 1
  for (int n = 0; n < steps; ++n) {
    const int stage = n % kStages;
    if (!kOneWaits || WARP % 4 == 0) WAIT(full + 8 * stage, n / kStages & 1);
    if (kOneWaits) NAMED_BARRIER(1 + group, 128);
    WGMMA_FENCE();
    WGMMA8(d, WGMMA8_OPERAND(base + 2048 * stage), WGMMA8_OPERAND(SHARED(ones)));
    WGMMA_COMMIT();
    BROKEN(if (!kLater && threadIdx.x % 128 == leader) ARRIVE(empty + 8 * stage); __syncwarp();)
    if (kLater) {
      FIXED(WGMMA8_WAIT_BUT_ONE(d);)
      if (n > 0 && threadIdx.x % 128 == leader) ARRIVE(empty + 8 * ((n - 1) % kStages));
      __syncwarp();
      BROKEN(WGMMA8_WAIT_BUT_ONE(d);)
    } else {
      WGMMA8_WAIT(d);
      FIXED(if (threadIdx.x % 128 == leader) ARRIVE(empty + 8 * stage); __syncwarp();)
    }
  }
  WGMMA8_WAIT(d);
  const int row = 64 * group + WARP % 4 * 16 + LANE / 4;
  if (LANE % 4 == 0) out[row] = d[0];
  if (LANE % 4 == 0) out[row + 8] = d[2];
}

KERNEL one_stage(const u32* a, float* out, int steps, int leader) { release<1, false, false>(a, out, steps, leader); }
KERNEL two_stages(const u32* a, float* out, int steps, int leader) { release<2, true, false>(a, out, steps, leader); }
KERNEL one_warp_waits(const u32* a, float* out, int steps, int leader) { release<2, true, true>(a, out, steps, leader); }
