// Bug classes of clusters.
#include "classes.cuh"

#define PAIR extern "C" __global__ void __cluster_dims__(2, 1, 1)

// Each CTA writes its own shared memory and signals the other, which reads it from there: a release of CTA
// scope does not reach a thread of another CTA.
PAIR cta_scope(const u32* in, u32* out) {
  __shared__ u32 tile[32];
  __shared__ u64 barrier;
  const u32 base = SHARED(tile) + 4 * LANE, ready = SHARED(&barrier);
  u32 rank, x;
  CLUSTER_RANK(rank);
  BARRIER_BEGIN(ready, 32);
  CLUSTER_SYNC();
  STORE_SHARED(base, in[32 * rank + LANE]);
  FIXED(ARRIVE_AT(ready, rank ^ 1);)
  BROKEN(ARRIVE_AT_CTA_SCOPE(ready, rank ^ 1);)
  WAIT_CLUSTER(ready, 0);
  LOAD_SHARED_AT(x, base, rank ^ 1);
  out[32 * rank + LANE] = x;
  CLUSTER_SYNC();
}

// The other side of the same hand-over: a wait that acquires at CTA scope.
PAIR acquire_at_cta_scope(const u32* in, u32* out) {
  __shared__ u32 tile[32];
  __shared__ u64 barrier;
  const u32 base = SHARED(tile) + 4 * LANE, ready = SHARED(&barrier);
  u32 rank, x;
  CLUSTER_RANK(rank);
  BARRIER_BEGIN(ready, 32);
  CLUSTER_SYNC();
  STORE_SHARED(base, in[32 * rank + LANE]);
  ARRIVE_AT(ready, rank ^ 1);
  FIXED(WAIT_CLUSTER(ready, 0);)
  BROKEN(WAIT(ready, 0);)
  LOAD_SHARED_AT(x, base, rank ^ 1);
  out[32 * rank + LANE] = x;
  CLUSTER_SYNC();
}

// The mask of a multicast names a rank past the last one.
PAIR mask_outside(const u32* in, u32* out) {
  __shared__ __align__(128) u32 tile[32];
  __shared__ u64 barrier;
  const u32 base = SHARED(tile), full = SHARED(&barrier);
  u32 rank, x;
  CLUSTER_RANK(rank);
  BARRIER_BEGIN(full, 1);
  CLUSTER_SYNC();
  if (threadIdx.x == 0) {
    EXPECT(full, 128);
    FIXED(if (rank == 0) BULK_LOAD_MULTICAST(base, in, 128, full, 0b11);)
    BROKEN(if (rank == 0) BULK_LOAD_MULTICAST(base, in, 128, full, 0b111);)
  }
  WAIT(full, 0);
  LOAD_SHARED_WORD(x, base + 4 * LANE);
  out[32 * rank + LANE] = x;
  CLUSTER_SYNC();
}

// The leader loads the next tile for both CTAs when its own epilogue is over, not when both are.
PAIR peer_epilogue(const u32* in, u32* out, int tiles) {
  __shared__ __align__(128) u32 tile[32];
  __shared__ u64 barriers[2];
  const u32 base = SHARED(tile), full = SHARED(barriers), read = full + 8;
  u32 rank, x;
  CLUSTER_RANK(rank);
  if (threadIdx.x == 0) {
    BARRIER_INIT(full, 1);
    FIXED(BARRIER_INIT(read, 64);)
    BROKEN(BARRIER_INIT(read, 32);)
    FENCE_BARRIER_INIT();
  }
  CLUSTER_SYNC();
  if (WARP == 1) {
    for (int n = 0; n < tiles && LANE == 0; ++n) {
      if (rank == 0) WAIT_CLUSTER(read, (n & 1) ^ 1);
      EXPECT(full, 128);
      if (rank == 0) BULK_LOAD_MULTICAST(base, in + 32 * n, 128, full, 0b11);
      if (rank == 1) WAIT(full, n & 1);
    }
  } else {
    for (int n = 0; n < tiles; ++n) {
      WAIT(full, n & 1);
      LOAD_SHARED_WORD(x, base + 4 * LANE);
      FENCE_PROXY_ASYNC();
      FIXED(ARRIVE_AT(read, 0);)
      BROKEN(if (rank == 0) ARRIVE(read);)
      out[32 * (2 * n + rank) + LANE] = x;
    }
  }
  __syncwarp();
  CLUSTER_SYNC();
}

// The second CTA writes into the first one's shared memory once more, when that one has what it needs
// and may have left.
PAIR exit_under_peer(const u32* in, u32* out) {
  __shared__ u32 mailbox[64];
  __shared__ u64 barrier;
  const u32 place = SHARED(mailbox) + 4 * LANE, full = SHARED(&barrier);
  u32 rank, x;
  CLUSTER_RANK(rank);
  BARRIER_BEGIN(full, 32);
  CLUSTER_SYNC();
  if (rank == 1) {
    STORE_SHARED_AT(place, 0, in[LANE]);
    ARRIVE_AT(full, 0);
    STORE_SHARED_AT(place + 128, 0, 0);
  } else {
    WAIT_CLUSTER(full, 0);
    LOAD_SHARED_WORD(x, place);
    out[LANE] = x;
  }
  FIXED(CLUSTER_SYNC();)
}
