// Bug classes of programmatic dependent launch and of tensor maps that a kernel changes.
#include "classes.cuh"

// The launch says that the grid may start before the one that writes `x` has ended.
KERNEL no_grid_wait(const u32* weights, const u32* x, u32* out) {
  const u32 weight = weights[threadIdx.x];
  FIXED(GRID_WAIT();)
  out[threadIdx.x] = weight * x[threadIdx.x];
}

// The wait is there, behind the load of a bulk copy that it should have come before.
KERNEL late_grid_wait(const u32* x, u32* out) {
  __shared__ __align__(128) u32 tile[64];
  __shared__ u64 barrier;
  const u32 base = SHARED(tile), full = SHARED(&barrier);
  if (threadIdx.x == 0) {
    BARRIER_INIT(full, 1);
    FENCE_BARRIER_INIT();
    EXPECT(full, 256);
    FIXED(GRID_WAIT();)
    BULK_LOAD(base, x, 256, full);
  }
  __syncthreads();
  WAIT(full, 0);
  BROKEN(GRID_WAIT();)
  u32 value;
  LOAD_SHARED_WORD(value, base + 4 * threadIdx.x);
  out[threadIdx.x] = value;
}

// A tensor map in global memory is pointed to the next group while the copy of the last group may still
// be reading the map.
KERNEL map_in_flight(const __grid_constant__ TensorMap first, u64* map, const u32* in, u32* out, int groups) {
  __shared__ __align__(128) u64 shadow[16];
  __shared__ __align__(128) u32 tiles[4 * 32];
  __shared__ u64 barriers[4];
  const u32 copy = SHARED(shadow), base = SHARED(tiles), full = SHARED(barriers);
  if (LANE < 16) shadow[LANE] = first.opaque[LANE];
  if (LANE < 4) BARRIER_INIT(full + 8 * LANE, 1);
  if (LANE < 4) FENCE_BARRIER_INIT();
  for (int group = 0; group < groups; ++group) {
    __syncwarp();
    if (LANE == 0) MAP_ADDRESS(copy, in + 32 * group);
    __syncwarp();
    MAP_PUBLISH(map, copy);
    MAP_ACQUIRE(map);
    if (LANE == 0) EXPECT(full + 8 * group, 128);
    if (LANE == 0) TMA_LOAD(base + 128 * group, *map, 0, 0, full + 8 * group);
    FIXED(WAIT(full + 8 * group, 0);)
  }
  BROKEN(for (int group = 0; group < groups; ++group) WAIT(full + 8 * group, 0);)
  u32 x;
  for (int group = 0; group < groups; ++group) {
    LOAD_SHARED_WORD(x, base + 128 * group + 4 * LANE);
    out[32 * group + LANE] = x;
  }
}

// A tensor map is changed, and the copy that uses it is not ordered by the fence of the tensormap proxy.
KERNEL map_unfenced(const __grid_constant__ TensorMap first, u64* map, const u32* in, u32* out) {
  __shared__ __align__(128) u64 shadow[16];
  __shared__ __align__(128) u32 tile[32];
  __shared__ u64 barrier;
  const u32 copy = SHARED(shadow), base = SHARED(tile), full = SHARED(&barrier);
  if (LANE < 16) shadow[LANE] = first.opaque[LANE];
  if (LANE == 0) BARRIER_INIT(full, 1);
  if (LANE == 0) FENCE_BARRIER_INIT();
  __syncwarp();
  if (LANE == 0) MAP_ADDRESS(copy, in + 32);
  __syncwarp();
  MAP_PUBLISH(map, copy);
  FIXED(MAP_ACQUIRE(map);)
  if (LANE == 0) EXPECT(full, 128);
  if (LANE == 0) TMA_LOAD(base, *map, 0, 0, full);
  WAIT(full, 0);
  u32 x;
  LOAD_SHARED_WORD(x, base + 4 * LANE);
  out[LANE] = x;
}
