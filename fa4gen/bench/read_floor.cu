// The read floor: one thread of each CTA streams memory through shared memory by bulk copies of
// 16 KB, `depth` of them in flight, and looks at nothing. What reads as many bytes cannot be faster.
constexpr int kBytes = 16384;

extern "C" __global__ void __launch_bounds__(128)
read_floor(const char* __restrict__ memory, long long chunks, int depth) {
  extern __shared__ __align__(128) char slots[];
  __shared__ __align__(8) unsigned long long full[16];
  const unsigned slot_base = static_cast<unsigned>(__cvta_generic_to_shared(slots));
  const unsigned full_base = static_cast<unsigned>(__cvta_generic_to_shared(full));
  if (threadIdx.x == 0) {
    for (int i = 0; i < depth; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full_base + 8 * i));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x != 0) return;

  const auto copy = [&](long long chunk, int slot) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     full_base + 8 * slot),
                 "r"(kBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(slot_base + slot * kBytes),
        "l"(memory + chunk * kBytes), "r"(kBytes), "r"(full_base + 8 * slot)
        : "memory");
  };
  long long next = blockIdx.x;
  for (int slot = 0; slot < depth && next < chunks; ++slot, next += gridDim.x) copy(next, slot);
  int slot = 0, phase = 0;
  for (long long chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
        "@!done bra again; }" ::"r"(full_base + 8 * slot),
        "r"(phase)
        : "memory");
    if (next < chunks) {
      copy(next, slot);
      next += gridDim.x;
    }
    if (++slot == depth) {
      slot = 0;
      phase ^= 1;
    }
  }
}
