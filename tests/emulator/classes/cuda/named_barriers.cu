// Bug classes of named barriers.
#include "classes.cuh"

// The producer arrives for the next word before the consumer has come to the barrier for this one.
KERNEL second_arrive(const u32* in, u32* out, int steps) {
  __shared__ u32 mailbox[32];
  const u32 place = SHARED(mailbox) + 4 * LANE;
  for (int n = 0; n < steps; ++n) {
    if (WARP == 0) {
      FIXED(if (n > 0) NAMED_BARRIER(2, 64);)
      STORE_SHARED(place, in[32 * n + LANE]);
      NAMED_ARRIVE(1, 64);
    } else {
      u32 x;
      NAMED_BARRIER(1, 64);
      LOAD_SHARED_WORD(x, place);
      FIXED(if (n + 1 < steps) NAMED_ARRIVE(2, 64);)
      out[32 * n + LANE] = x;
    }
  }
}

// A wrapper adds the eight ids that a library keeps for itself to one that was counted from the end.
KERNEL id_out_of_range(const u32* in, u32* out) {
  __shared__ u32 tile[64];
  const u32 base = SHARED(tile);
  STORE_SHARED(base + 4 * threadIdx.x, in[threadIdx.x]);
  FIXED(NAMED_BARRIER(8 + 1, 64);)
  BROKEN(NAMED_BARRIER(8 + 10, 64);)
  u32 x;
  LOAD_SHARED_WORD(x, base + 4 * (63 - threadIdx.x));
  out[threadIdx.x] = x;
}

// Two groups of threads, each with a barrier of its own, got the same id: a hand-picked one and the
// compiler's, say.
KERNEL one_id(const u32* in, u32* out) {
  __shared__ u32 tile[128];
  const u32 group = threadIdx.x / 64, base = SHARED(tile) + 256 * group, mine = threadIdx.x % 64;
  u32 x;
  for (int n = 0; n < 2; ++n) {
    STORE_SHARED(base + 4 * mine, in[128 * n + threadIdx.x]);
    FIXED(NAMED_BARRIER(1 + group, 64);)
    BROKEN(NAMED_BARRIER(1, 64);)
    LOAD_SHARED_WORD(x, base + 4 * (63 - mine));
    out[128 * n + threadIdx.x] = x;
    FIXED(NAMED_BARRIER(1 + group, 64);)
    BROKEN(NAMED_BARRIER(1, 64);)
  }
}

// Four warps load instead of one, and the barrier still counts one of them and the warp that waits.
KERNEL four_load_warps(const u32* in, u32* out) {
  __shared__ u32 tile[128];
  const u32 base = SHARED(tile);
  if (WARP < 4) {
    STORE_SHARED(base + 4 * threadIdx.x, in[threadIdx.x]);
    FIXED(NAMED_ARRIVE(1, 160);)
    BROKEN(NAMED_ARRIVE(1, 64);)
    return;
  }
  FIXED(NAMED_BARRIER(1, 160);)
  BROKEN(NAMED_BARRIER(1, 64);)
  for (int i = 0; i < 4; ++i) {
    u32 x;
    LOAD_SHARED_WORD(x, base + 4 * (32 * i + LANE));
    out[32 * i + LANE] = x;
  }
}

// Threads come to a barrier in whole warps; 48 of them were counted one by one.
KERNEL half_a_warp(const u32* in, u32* out) {
  __shared__ u32 tile[64];
  const u32 base = SHARED(tile);
  if (threadIdx.x < 48) STORE_SHARED(base + 4 * threadIdx.x, in[threadIdx.x]);
  FIXED(NAMED_BARRIER(1, 64);)
  BROKEN(NAMED_BARRIER(1, 48);)
  u32 x;
  if (threadIdx.x < 48) LOAD_SHARED_WORD(x, base + 4 * (47 - threadIdx.x));
  if (threadIdx.x < 48) out[threadIdx.x] = x;
}
