// Bug classes of flags and counters in global memory, by which CTAs hand results to each other.
#include "classes.cuh"

#define POLL(value, flag, order) \
  asm volatile("ld." order ".gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory")
#define COUNT_UP(counter, order) asm volatile("red." order ".global.add.u32 [%0], 1;" ::"l"(counter) : "memory")
#define TICKET(before, counter) \
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory")
#define FENCE_GPU() asm volatile("fence.acq_rel.gpu;" ::: "memory")

// One CTA waits for the counter of the other, by loads that acquire nothing.
KERNEL flag_not_acquired(const u32* in, u32* parts, u32* counter, u32* out) {
  u32 count = 0;
  if (blockIdx.x == 0) {
    parts[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) COUNT_UP(counter, "release.gpu");
  } else {
    while (threadIdx.x == 0 && count == 0) {
      FIXED(POLL(count, counter, "acquire");)
      BROKEN(POLL(count, counter, "relaxed");)
    }
    __syncthreads();
    out[threadIdx.x] = parts[threadIdx.x];
  }
}

// The counter goes up without a release, or a fence before it.
KERNEL counter_not_released(const u32* in, u32* parts, u32* counter, u32* out) {
  u32 count = 0;
  if (blockIdx.x == 0) {
    parts[threadIdx.x] = in[threadIdx.x];
    FIXED(FENCE_GPU();)
    __syncthreads();
    if (threadIdx.x == 0) COUNT_UP(counter, "relaxed.gpu");
  } else {
    while (threadIdx.x == 0 && count == 0) POLL(count, counter, "acquire");
    __syncthreads();
    out[threadIdx.x] = parts[threadIdx.x];
  }
}

// The release reaches the threads of the CTA alone.
KERNEL counter_for_its_cta(const u32* in, u32* parts, u32* counter, u32* out) {
  u32 count = 0;
  if (blockIdx.x == 0) {
    parts[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    FIXED(if (threadIdx.x == 0) COUNT_UP(counter, "release.gpu");)
    BROKEN(if (threadIdx.x == 0) COUNT_UP(counter, "release.cta");)
  } else {
    while (threadIdx.x == 0 && count == 0) POLL(count, counter, "acquire");
    __syncthreads();
    out[threadIdx.x] = parts[threadIdx.x];
  }
}

// Whoever draws the last ticket adds what all have written: with a fence before the ticket, and none
// after it.
KERNEL ticket_without_fence(const u32* in, u32* parts, u32* counter, u32* out) {
  __shared__ u32 last;
  parts[64 * blockIdx.x + threadIdx.x] = in[64 * blockIdx.x + threadIdx.x];
  FENCE_GPU();
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 before;
    TICKET(before, counter);
    FIXED(FENCE_GPU();)
    last = before == 2;
  }
  __syncthreads();
  if (last) out[threadIdx.x] = parts[threadIdx.x] + parts[64 + threadIdx.x] + parts[128 + threadIdx.x];
}
