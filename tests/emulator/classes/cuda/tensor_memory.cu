// Bug classes of tensor memory.
#include "classes.cuh"

constexpr u32 kOnes = 0x3f803f80u, kTwos = 0x40004000u;  // two numbers of bf16
constexpr u32 kABytes = 128 * 32, kBBytes = 32 * 32;     // operands of 16 columns

// Two warpgroups take half of the scores each, and store weights over the last columns of the same
// scores: those of the first group over scores that the second may not have loaded.
KERNEL weights_over_scores(u32* out) {
  TMEM_BEGIN(columns, 32);
  const u32 group = WARP / 4, mine = columns + QUARTER;
  u32 r[8], sum = 0;
  for (int part = 0; part < 4 && group == 0; ++part) {
    for (int i = 0; i < 8; ++i) r[i] = 32 * threadIdx.x + 8 * part + i;
    TMEM_STORE8(mine + 8 * part, r);
  }
  TMEM_WAIT_STORES();
  FENCE_BEFORE();
  __syncthreads();
  FENCE_AFTER();
  for (int part = 0; part < 2; ++part) {
    TMEM_LOAD8(r, mine + 16 * group + 8 * part);
    TMEM_WAIT_LOADS();
    for (int i = 0; i < 8; ++i) sum += r[i];
  }
  FENCE_BEFORE();
  FIXED(__syncthreads();)
  FENCE_AFTER();
  for (int i = 0; i < 8; ++i) r[i] = sum;
  TMEM_STORE8(mine + 16 + 8 * group, r);
  TMEM_WAIT_STORES();
  out[threadIdx.x] = sum;
  TMEM_END(columns, 32);
}

// Two accumulators share columns, and their user is asked for the one only that is written next.
KERNEL aliased_slot(float* out, int steps) {
  __shared__ __align__(128) u32 operands[(kABytes + kBBytes) / 4];
  __shared__ u64 barriers[4];
  const u32 a = SHARED(operands), done = SHARED(barriers), free = done + 16;
  for (u32 at = 4 * threadIdx.x; at < kABytes + kBBytes; at += 640) STORE_SHARED(a + at, kOnes);
  FENCE_PROXY_ASYNC();
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < 2; ++slot) BARRIER_INIT(done + 8 * slot, 1);
    for (int slot = 0; slot < 2; ++slot) BARRIER_INIT(free + 8 * slot, 128);
    FENCE_BARRIER_INIT();
  }
  TMEM_BEGIN(columns, 64);
  if (threadIdx.x == 128) {
    for (int n = 0; n < steps; ++n) {
      const u32 slot = n % 2;
      WAIT(free + 8 * slot, (n / 2 & 1) ^ 1);
      FIXED(if (n > 0) WAIT(free + 8 * (slot ^ 1), (n - 1) / 2 & 1);)
      FENCE_AFTER();
      MMA(columns + 16 * slot, MMA16_OPERAND(a), MMA16_OPERAND(a + kABytes), MMA_SHAPE(128, 32), 0);
      if (slot == 1) MMA(columns + 16, MMA16_OPERAND(a), MMA16_OPERAND(a + kABytes), MMA_SHAPE(128, 32), 1);
      COMMIT(done + 8 * slot);
    }
  } else if (WARP < 4) {
    for (int n = 0; n < steps; ++n) {
      const u32 slot = n % 2;
      u32 r[32];
      WAIT(done + 8 * slot, n / 2 & 1);
      FENCE_AFTER();
      TMEM_LOAD(r, columns + 16 * slot + QUARTER);
      TMEM_WAIT_LOADS();
      FENCE_BEFORE();
      ARRIVE(free + 8 * slot);
      float sum = 0;
      for (int i = 0; i < 32; ++i) sum += __uint_as_float(r[i]);
      out[128 * n + threadIdx.x] = sum;
    }
  }
  __syncwarp();
  TMEM_END(columns, 64);
}

// The accumulator is freed when its first half has been loaded, and the second is loaded then.
KERNEL released_before_load(float* out, int steps) {
  __shared__ __align__(128) u32 operands[(kABytes + kBBytes) / 4];
  __shared__ u64 barriers[2];
  const u32 a = SHARED(operands), done = SHARED(barriers), free = done + 8;
  for (u32 at = 4 * threadIdx.x; at < kABytes + kBBytes; at += 640) STORE_SHARED(a + at, kOnes);
  FENCE_PROXY_ASYNC();
  BARRIERS_BEGIN(done, 1, free, 128);
  TMEM_BEGIN(columns, 32);
  if (threadIdx.x == 128) {
    for (int n = 0; n < steps; ++n) {
      WAIT(free, (n & 1) ^ 1);
      FENCE_AFTER();
      for (int k = 0; k <= n; ++k) MMA(columns, MMA16_OPERAND(a), MMA16_OPERAND(a + kABytes), MMA_SHAPE(128, 32), k > 0);
      COMMIT(done);
    }
  } else if (WARP < 4) {
    for (int n = 0; n < steps; ++n) {
      u32 first[8], last[8];
      WAIT(done, n & 1);
      FENCE_AFTER();
      TMEM_LOAD8(first, columns + QUARTER);
      TMEM_WAIT_LOADS();
      BROKEN(FENCE_BEFORE();)
      BROKEN(ARRIVE(free);)
      TMEM_LOAD8(last, columns + 24 + QUARTER);
      TMEM_WAIT_LOADS();
      FIXED(FENCE_BEFORE();)
      FIXED(ARRIVE(free);)
      out[128 * n + threadIdx.x] = __uint_as_float(first[0]) + __uint_as_float(last[7]);
    }
  }
  __syncwarp();
  TMEM_END(columns, 32);
}

// For a tile without keys there are no products: the accumulator holds anything, and anything times
// zero may be NaN.
KERNEL empty_accumulator(const int* keys, float* out, int tiles) {
  __shared__ __align__(128) u32 operands[(kABytes + kBBytes) / 4];
  __shared__ u64 barriers[2];
  const u32 a = SHARED(operands), done = SHARED(barriers), free = done + 8;
  for (u32 at = 4 * threadIdx.x; at < kABytes + kBBytes; at += 640) STORE_SHARED(a + at, kOnes);
  FENCE_PROXY_ASYNC();
  BARRIERS_BEGIN(done, 1, free, 128);
  TMEM_BEGIN(columns, 32);
  if (threadIdx.x == 128) {
    for (int tile = 0; tile < tiles; ++tile) {
      WAIT(free, (tile & 1) ^ 1);
      FENCE_AFTER();
      for (int k = 0; k < keys[tile]; ++k) MMA(columns, MMA16_OPERAND(a), MMA16_OPERAND(a + kABytes), MMA_SHAPE(128, 32), k > 0);
      COMMIT(done);
    }
  } else if (WARP < 4) {
    for (int tile = 0; tile < tiles; ++tile) {
      u32 r[8] = {};
      WAIT(done, tile & 1);
      FENCE_AFTER();
      FIXED(if (keys[tile] > 0)) TMEM_LOAD8(r, columns + QUARTER);
      TMEM_WAIT_LOADS();
      FENCE_BEFORE();
      ARRIVE(free);
      const float factor = keys[tile] > 0 ? 1.0f : 0.0f;
      out[128 * tile + threadIdx.x] = factor * __uint_as_float(r[0]);
    }
  }
  __syncwarp();
  TMEM_END(columns, 32);
}

// Weights in tensor memory are overwritten when the product that reads them has been issued, not when it
// is complete.
KERNEL operand_overwritten(float* out, int steps) {
  __shared__ __align__(128) u32 operand[kBBytes / 4];
  __shared__ u64 barriers[3];
  const u32 b = SHARED(operand), ready = SHARED(barriers), done = ready + 8, last = done + 8;
  for (u32 at = 4 * threadIdx.x; at < kBBytes; at += 640) STORE_SHARED(b + at, kOnes);
  FENCE_PROXY_ASYNC();
  if (threadIdx.x == 0) {
    BARRIER_INIT(ready, 128);
    BARRIER_INIT(done, 1);
    BARRIER_INIT(last, 1);
    FENCE_BARRIER_INIT();
  }
  TMEM_BEGIN(columns, 64);
  if (threadIdx.x == 128) {
    for (int n = 0; n < steps; ++n) {
      WAIT(ready, n & 1);
      FENCE_AFTER();
      MMA_A_IN_TMEM(columns, columns + 32, MMA16_OPERAND(b), MMA_SHAPE(128, 32), n > 0);
      FIXED(COMMIT(done);)
      BROKEN(ARRIVE(done);)
    }
    COMMIT(last);
  } else if (WARP < 4) {
    u32 r[8];
    for (int n = 0; n < steps; ++n) {
      if (n > 0) WAIT(done, n - 1 & 1);
      FENCE_AFTER();
      for (int i = 0; i < 8; ++i) r[i] = n == 0 ? kOnes : kTwos;
      TMEM_STORE8(columns + 32 + QUARTER, r);
      TMEM_WAIT_STORES();
      FENCE_BEFORE();
      ARRIVE(ready);
    }
    WAIT(last, 0);
    FENCE_AFTER();
    TMEM_LOAD8(r, columns + QUARTER);
    TMEM_WAIT_LOADS();
    out[threadIdx.x] = __uint_as_float(r[0]);
  }
  __syncwarp();
  TMEM_END(columns, 64);
}

// A commit for both CTAs names a rank past the last one, too.
extern "C" __global__ void __cluster_dims__(2, 1, 1) commit_outside(u32* out) {
  __shared__ u64 barrier;
  const u32 empty = SHARED(&barrier);
  u32 rank;
  CLUSTER_RANK(rank);
  BARRIER_BEGIN(empty, 2);
  CLUSTER_SYNC();
  FIXED(if (threadIdx.x == 0) COMMIT_MULTICAST(empty, 0b11);)
  BROKEN(if (threadIdx.x == 0) COMMIT_MULTICAST(empty, 0b111);)
  WAIT_CLUSTER(empty, 0);
  out[32 * rank + LANE] = 1;
  CLUSTER_SYNC();
}

// One CTA of a pair gives its columns back while the other may still be at its allocation.
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair_dealloc(u32* out) {
  __shared__ u32 slot;
  u32 rank, columns;
  CLUSTER_RANK(rank);
  TMEM_ALLOC(2, SHARED(&slot), 32);
  __syncwarp();
  LOAD_SHARED_WORD(columns, SHARED(&slot));
  FIXED(CLUSTER_SYNC();)
  TMEM_RELINQUISH(2);
  TMEM_DEALLOC(2, columns, 32);
  out[32 * rank + LANE] = 1;
}
