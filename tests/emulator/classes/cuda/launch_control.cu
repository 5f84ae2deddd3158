// Bug classes of clusterlaunchcontrol: CTAs that take over the work of others that have not started.
#include "classes.cuh"

// A warp that has a tile, and a place for the response that names the next.
#define RESPONSE_BEGIN() \
  __shared__ __align__(16) u32 words[4]; \
  __shared__ u64 barrier; \
  const u32 response = SHARED(words), answered = SHARED(&barrier); \
  if (LANE == 0) { BARRIER_INIT(answered, 1); FENCE_BARRIER_INIT(); } \
  __syncwarp(); \
  u32 tile = blockIdx.x, cancelled = 1

// The response to one request is read by ordinary loads, and the next overwrites it.
KERNEL response_reused(u32* out) {
  RESPONSE_BEGIN();
  for (u32 n = 0; cancelled; ++n) {
    if (LANE == 0) EXPECT(answered, 16);
    if (LANE == 0) TRY_CANCEL(response, answered);
    out[32 * tile + LANE] = tile;
    WAIT(answered, n & 1);
    QUERY_CANCEL(cancelled, tile, response);
    FIXED(FENCE_PROXY_ASYNC();)
    __syncwarp();
  }
}

// The warp that works gives the response's place back before it has read the response.
KERNEL response_released(u32* out) {
  __shared__ __align__(16) u32 words[4];
  __shared__ u64 barriers[2];
  const u32 response = SHARED(words), answered = SHARED(barriers), read = answered + 8;
  BARRIERS_BEGIN(answered, 1, read, 32);
  __syncthreads();
  u32 tile = blockIdx.x, cancelled = 1;
  if (WARP == 1) {
    for (u32 n = 0; cancelled && LANE == 0; ++n) {
      WAIT(read, (n & 1) ^ 1);
      EXPECT(answered, 16);
      TRY_CANCEL(response, answered);
      WAIT(answered, n & 1);
      QUERY_CANCEL(cancelled, tile, response);
      FENCE_PROXY_ASYNC();
    }
    return;
  }
  for (u32 n = 0; cancelled; ++n) {
    out[32 * tile + LANE] = tile;
    WAIT(answered, n & 1);
    BROKEN(ARRIVE(read);)
    QUERY_CANCEL(cancelled, tile, response);
    FENCE_PROXY_ASYNC();
    FIXED(ARRIVE(read);)
  }
}

// A CTA that has done its share ends, though it has just taken one more off the grid.
KERNEL lost_tile(u32* out, u32 share) {
  RESPONSE_BEGIN();
  for (u32 n = 0; cancelled; ++n) {
    BROKEN(if (n == share) break;)
    out[32 * tile + LANE] = tile + 1;
    FIXED(if (n + 1 == share) break;)
    if (LANE == 0) EXPECT(answered, 16);
    if (LANE == 0) TRY_CANCEL(response, answered);
    WAIT(answered, n & 1);
    QUERY_CANCEL(cancelled, tile, response);
    FENCE_PROXY_ASYNC();
    __syncwarp();
  }
}

// An early way out of a tile without keys, while the request for the next tile is under way.
KERNEL response_unread(const int* keys, u32* out) {
  RESPONSE_BEGIN();
  for (u32 n = 0; cancelled; ++n) {
    if (LANE == 0) EXPECT(answered, 16);
    if (LANE == 0) TRY_CANCEL(response, answered);
    out[32 * tile + LANE] = keys[tile];
    BROKEN(if (keys[tile] == 0) return;)
    WAIT(answered, n & 1);
    QUERY_CANCEL(cancelled, tile, response);
    FENCE_PROXY_ASYNC();
    __syncwarp();
  }
}
