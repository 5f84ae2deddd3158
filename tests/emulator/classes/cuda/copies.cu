// Bug classes of bulk copies between global and shared memory.
#include "classes.cuh"

// Every thread writes into every row of the staging memory, and a thread of each row stores the row.
// That thread's wait says nothing to the others.
KERNEL wait_of_another(const u32* in, u32* out, int steps) {
  __shared__ __align__(128) u32 staging[4 * 32];
  const u32 base = SHARED(staging);
  for (int n = 0; n < steps; ++n) {
    if (LANE == 0) STORE_WAIT_READ();
    FIXED(__syncthreads();)
    BROKEN(__syncwarp();)
    // 32 rows and columns of warps: a warp writes eight words of each row
    for (int row = 0; row < 4; ++row) {
      if (LANE < 8) STORE_SHARED(base + 128 * row + 32 * WARP + 4 * LANE, in[128 * n + 32 * row + 8 * WARP + LANE]);
    }
    FENCE_PROXY_ASYNC();
    __syncthreads();
    if (LANE == 0) {
      BULK_STORE(out + 128 * n + 32 * WARP, base + 128 * WARP, 128);
      STORE_COMMIT();
    }
  }
  if (LANE == 0) STORE_WAIT();
}

// Two stages and a wait that leaves one store open: just that of the stage which is loaded next.
KERNEL wait_one_too_few(const u32* in, u32* out, int steps) {
  __shared__ __align__(128) u32 stages[2 * 32];
  __shared__ u64 barriers[2];
  const u32 base = SHARED(stages), full = SHARED(barriers);
  if (threadIdx.x != 0) return;
  BARRIER_INIT(full, 1);
  BARRIER_INIT(full + 8, 1);
  FENCE_BARRIER_INIT();
  for (int n = 0; n < 2; ++n) {
    EXPECT(full + 8 * n, 128);
    BULK_LOAD(base + 128 * n, in + 32 * n, 128, full + 8 * n);
  }
  for (int n = 0; n < steps; ++n) {
    const int stage = n % 2;
    WAIT(full + 8 * stage, n / 2 & 1);
    BULK_STORE(out + 32 * n, base + 128 * stage, 128);
    STORE_COMMIT();
    if (n + 2 < steps) {
      FIXED(STORE_WAIT_READ_BUT(0);)
      BROKEN(STORE_WAIT_READ_BUT(1);)
      EXPECT(full + 8 * stage, 128);
      BULK_LOAD(base + 128 * stage, in + 32 * (n + 2), 128, full + 8 * stage);
    }
  }
  STORE_WAIT();
}

// Three stages of staging memory take turns within a tile, and start anew with the next one, as its
// number is not counted: a stage comes back sooner than the wait allows for.
KERNEL stage_counter(const u32* in, u32* out, int tiles) {
  __shared__ __align__(128) u32 staging[3 * 32];
  const u32 base = SHARED(staging);
  for (int tile = 0; tile < tiles; ++tile) {
    for (int part = 0; part < 4; ++part) {
      FIXED(const int stage = (4 * tile + part) % 3;)
      BROKEN(const int stage = part % 3;)
      if (LANE == 0) STORE_WAIT_READ_BUT(2);
      __syncwarp();
      STORE_SHARED(base + 128 * stage + 4 * LANE, in[128 * tile + 32 * part + LANE]);
      FENCE_PROXY_ASYNC();
      __syncwarp();
      if (LANE == 0) {
        BULK_STORE(out + 128 * tile + 32 * part, base + 128 * stage, 128);
        STORE_COMMIT();
      }
    }
  }
  if (LANE == 0) STORE_WAIT();
}

// The fence is in the loop over keys; without keys the zeros are stored unfenced.
KERNEL fence_in_the_loop(const u32* in, u32* out, int keys) {
  __shared__ __align__(128) u32 tile[32];
  const u32 base = SHARED(tile) + 4 * LANE;
  STORE_SHARED(base, 0);
  u32 sum = 0;
  for (int key = 0; key < keys; ++key) {
    sum += in[32 * key + LANE];
    STORE_SHARED(base, sum);
    BROKEN(FENCE_PROXY_ASYNC();)
  }
  FIXED(FENCE_PROXY_ASYNC();)
  __syncwarp();
  if (LANE == 0) {
    BULK_STORE(out, SHARED(tile), 128);
    STORE_COMMIT();
    STORE_WAIT();
  }
}

// ldmatrix may still be reading when the arrival behind it gives the slot back to the next copy.
KERNEL ldmatrix_released(const u32* in, u32* out, int steps) {
  __shared__ __align__(128) u32 stage[32];
  __shared__ u64 barriers[2];
  const u32 base = SHARED(stage), full = SHARED(barriers), empty = full + 8;
  BARRIERS_BEGIN(full, 1, empty, 32);
  __syncthreads();
  if (WARP == 1) {
    for (int n = 0; n < steps && LANE == 0; ++n) {
      WAIT(empty, (n & 1) ^ 1);
      EXPECT(full, 128);
      BULK_LOAD(base, in + 32 * n, 128, full);
    }
    return;
  }
  for (int n = 0; n < steps; ++n) {
    u32 x;
    WAIT(full, n & 1);
    LDMATRIX(x, base + 16 * (LANE % 8));
    FIXED(FENCE_PROXY_ASYNC();)
    ARRIVE(empty);
    out[32 * n + LANE] = x;
  }
}
