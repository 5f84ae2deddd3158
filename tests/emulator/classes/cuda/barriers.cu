// Bug classes of mbarriers.
#include "classes.cuh"

// A tile without keys needs no load, so the worker does not wait for the loader there: it can hand the
// stage back twice before the loader has looked once.
KERNEL empty_tile(const int* keys, const u32* in, u32* out, int tiles) {
  __shared__ __align__(128) u32 stage[32];
  __shared__ u64 barriers[2];
  const u32 base = SHARED(stage), full = SHARED(barriers), empty = full + 8;
  BARRIERS_BEGIN(full, 1, empty, 32);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < tiles; ++tile) {
      WAIT(empty, (tile & 1) ^ 1);
      if (keys[tile] > 0) {
        EXPECT(full, 128);
        BULK_LOAD(base, in + 32 * tile, 128, full);
      }
      FIXED(else ARRIVE(full);)
    }
  } else if (WARP == 1) {
    BROKEN(int loads = 0;)
    for (int tile = 0; tile < tiles; ++tile) {
      u32 x = 0;
      FIXED(WAIT(full, tile & 1);)
      BROKEN(if (keys[tile] > 0) WAIT(full, loads++ & 1);)
      if (keys[tile] > 0) LOAD_SHARED_WORD(x, base + 4 * LANE);
      FENCE_PROXY_ASYNC();
      ARRIVE(empty);
      out[32 * tile + LANE] = x;
    }
  }
}

// The first warp of the consumers arrives for all of them while the others may still be in the wait.
KERNEL leader_arrives(u32* out, int steps) {
  __shared__ u64 barriers[2];
  const u32 full = SHARED(barriers), empty = full + 8;
  BARRIERS_BEGIN(full, 1, empty, 1);
  __syncthreads();
  if (WARP == 4) {
    for (int n = 0; n < steps; ++n) {
      WAIT(empty, (n & 1) ^ 1);
      if (LANE == 0) ARRIVE(full);
      __syncwarp();
    }
    return;
  }
  for (int n = 0; n < steps; ++n) {
    WAIT(full, n & 1);
    FIXED(NAMED_BARRIER(1, 128);)
    if (threadIdx.x == 0) ARRIVE(empty);
    __syncwarp();
  }
  out[threadIdx.x] = steps;
}

// The first warp of the consumers gives the stage back when it has read its own part.
KERNEL leader_releases(const u32* in, u32* out, int steps) {
  __shared__ __align__(128) u32 stage[128];
  __shared__ u64 barriers[2];
  const u32 base = SHARED(stage), full = SHARED(barriers), empty = full + 8;
  BARRIERS_BEGIN(full, 1, empty, 1);
  __syncthreads();
  if (WARP == 4) {
    if (LANE == 0) {
      for (int n = 0; n < steps; ++n) {
        WAIT(empty, (n & 1) ^ 1);
        EXPECT(full, 512);
        BULK_LOAD(base, in + 128 * n, 512, full);
      }
    }
    return;
  }
  u32 sum = 0, x;
  for (int n = 0; n < steps; ++n) {
    WAIT(full, n & 1);
    LOAD_SHARED_WORD(x, base + 4 * threadIdx.x);
    sum += x;
    FENCE_PROXY_ASYNC();
    FIXED(NAMED_BARRIER(1, 128);)
    BROKEN(__syncwarp();)
    if (threadIdx.x == 0) ARRIVE(empty);
  }
  out[threadIdx.x] = sum;
}

// A wait outside of the condition under which the other side arrives.
KERNEL unguarded_wait(const u32* in, u32* out, int beta) {
  __shared__ u64 barrier;
  const u32 order = SHARED(&barrier);
  BARRIER_BEGIN(order, 1);
  __syncthreads();
  if (WARP == 0) {
    if (LANE == 0 && beta != 0) ARRIVE(order);
    return;
  }
  FIXED(if (beta != 0)) WAIT(order, 0);
  out[LANE] = in[LANE];
}

// Threads come to a barrier that another thread may not have initialised yet.
KERNEL init_unsynchronised(const u32* in, u32* out) {
  __shared__ u32 tile[64];
  __shared__ u64 barrier;
  const u32 base = SHARED(tile), done = SHARED(&barrier);
  if (threadIdx.x == 0) BARRIER_INIT(done, 64);
  FIXED(__syncthreads();)
  STORE_SHARED(base + 4 * threadIdx.x, in[threadIdx.x]);
  ARRIVE(done);
  WAIT(done, 0);
  u32 x;
  LOAD_SHARED_WORD(x, base + 4 * (63 - threadIdx.x));
  out[threadIdx.x] = x;
}

// Two barriers, the first no longer needed, were given the same eight bytes.
KERNEL init_twice(u32* out) {
  __shared__ u64 barrier;
  const u32 place = SHARED(&barrier);
  if (threadIdx.x == 0) BARRIER_INIT(place, 32);
  __syncwarp();
  ARRIVE(place);
  WAIT(place, 0);
  __syncwarp();
  FIXED(if (threadIdx.x == 0) BARRIER_INVALIDATE(place);)
  if (threadIdx.x == 0) BARRIER_INIT(place, 32);
  __syncwarp();
  ARRIVE(place);
  WAIT(place, 0);
  out[threadIdx.x] = 1;
}

// A count of arrivals that was computed to zero.
KERNEL count_zero(u32* out, int producers) {
  __shared__ u64 barrier;
  const u32 place = SHARED(&barrier);
  FIXED(if (threadIdx.x == 0) BARRIER_INIT(place, producers);)
  BROKEN(if (threadIdx.x == 0) BARRIER_INIT(place, producers / 64);)
  __syncwarp();
  ARRIVE(place);
  WAIT(place, 0);
  out[threadIdx.x] = 1;
}

// Two loads into a stage, and the bytes of one are expected: the stage counts as full too early, or the
// barrier is out of step for good.
KERNEL wrong_bytes(const u32* in, u32* out, int steps) {
  __shared__ __align__(128) u32 stage[64];
  __shared__ u64 barrier;
  const u32 base = SHARED(stage), full = SHARED(&barrier);
  BARRIER_BEGIN(full, 1);
  __syncthreads();
  u32 sum = 0, x;
  for (int n = 0; n < steps; ++n) {
    if (threadIdx.x == 0) {
      FIXED(EXPECT(full, 256);)
      BROKEN(EXPECT(full, 128);)
      BULK_LOAD(base, in + 64 * n, 128, full);
      BULK_LOAD(base + 128, in + 64 * n + 32, 128, full);
    }
    WAIT(full, n & 1);
    LOAD_SHARED_WORD(x, base + 4 * threadIdx.x);
    sum += x;
    FENCE_PROXY_ASYNC();
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// The parity to wait for is in shared memory; one thread flips it while others have yet to read it.
KERNEL phase_word(u32* out, int steps) {
  __shared__ u64 barrier;
  __shared__ u32 word;
  const u32 place = SHARED(&barrier), parity_at = SHARED(&word);
  if (threadIdx.x == 0) {
    BARRIER_INIT(place, 64);
    STORE_SHARED(parity_at, 0);
  }
  __syncthreads();
  for (int n = 0; n < steps; ++n) {
    u32 parity;
    ARRIVE(place);
    LOAD_SHARED_WORD(parity, parity_at);
    WAIT(place, parity);
    FIXED(__syncthreads();)
    if (threadIdx.x == 0) STORE_SHARED(parity_at, parity ^ 1);
    __syncthreads();
  }
  out[threadIdx.x] = steps;
}
