// Bug classes of wgmma.
#include "classes.cuh"

// Two warpgroups multiply one tile of A. Each waits for its own products only, and goes on to overwrite
// what the other's may still be reading.
KERNEL no_loop_back(const u32* a, float* out, int steps) {
  __shared__ __align__(128) u32 tile[512], ones[2 * 64];
  const u32 group = threadIdx.x / 128, base = SHARED(tile), b = SHARED(ones) + 256 * group;
  if (threadIdx.x % 128 < 64) STORE_SHARED(b + 4 * (threadIdx.x % 128), group == 0 ? 0x3f803f80u : 0x40004000u);
  float d[4] = {};
#pragma unroll 1
  for (int n = 0; n < steps; ++n) {
    for (u32 word = threadIdx.x; word < 512; word += 256) {
      const u32 row = word / 64 * 8 + word % 32 / 4, pair = word / 32 % 2 * 4 + word % 4;
      STORE_SHARED(base + 4 * word, a[512 * n + 8 * row + pair]);
    }
    FENCE_PROXY_ASYNC();
    __syncthreads();
    WGMMA_FENCE();
    WGMMA8(d, WGMMA8_OPERAND(base), WGMMA8_OPERAND(b));
    WGMMA_COMMIT();
    WGMMA8_WAIT(d);
    FIXED(__syncthreads();)
  }
  const int row = WARP % 4 * 16 + LANE / 4;
  if (LANE % 4 == 0) out[64 * group + row] = d[0];
  if (LANE % 4 == 0) out[64 * group + row + 8] = d[2];
}

// Operands of the next product are loaded into the registers of one that may not have read them yet.
KERNEL registers_reused(const u32* a, float* out, int steps) {
  __shared__ __align__(128) u32 ones[64];
  if (threadIdx.x < 64) STORE_SHARED(SHARED(ones) + 4 * threadIdx.x, 0x3f803f80u);
  FENCE_PROXY_ASYNC();
  __syncthreads();
  const u32* mine = a + 8 * (WARP * 16 + LANE / 4) + LANE % 4;
  float d[4] = {};
  u32 x[4];
#pragma unroll 1
  for (int n = 0; n < steps; ++n) {
    for (int i = 0; i < 4; ++i) x[i] = mine[512 * n + i % 2 * 64 + i / 2 * 4];
    WGMMA_FENCE();
    WGMMA8_REGISTERS(d, x, WGMMA8_OPERAND(SHARED(ones)));
    WGMMA_COMMIT();
    FIXED(WGMMA8_WAIT(d);)
  }
  BROKEN(WGMMA8_WAIT(d);)
  const int row = WARP * 16 + LANE / 4;
  if (LANE % 4 == 0) out[row] = d[0];
  if (LANE % 4 == 0) out[row + 8] = d[2];
}
