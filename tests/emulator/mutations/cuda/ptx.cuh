// PTX instructions as macros and without line breaks, so that debug information names the line of the
// kernel (NVRTC counts the lines inside of an asm statement).
// Shared addresses are 32-bit and relative to the shared window.
#pragma once

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(64) TensorMap { u64 opaque[16]; };  // as the driver encodes it

// ---- shared memory
#define SHARED(pointer) static_cast<u32>(__cvta_generic_to_shared(pointer))
#define STORE_SHARED(address, value) \
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory")
#define STORE_SHARED4(address, a, b, c, d) \
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory")
#define LOAD_SHARED(value, address) \
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory")
#define LOAD_SHARED_WORD(value, address) \
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory")
#define LOAD_SHARED4(v, address) \
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" \
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address) : "memory")
#define FENCE_PROXY_ASYNC() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// ---- barriers
#define BARRIER_INIT(barrier, count) \
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory")
#define FENCE_BARRIER_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define EXPECT(barrier, bytes) \
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory")
#define ARRIVE(barrier) \
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory")
#define ARRIVE_AT(barrier, rank)                                      \
  asm volatile(                                                       \
      "{ .reg .b32 remote;"                                       \
      " mapa.shared::cluster.u32 remote, %0, %1;"                   \
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];}" ::"r"(barrier), "r"(rank) : "memory")
#define WAIT_WITH(scope, barrier, parity)                                             \
  asm volatile(                                                                       \
      "{ .reg .pred done;"                                                        \
      "again: mbarrier.try_wait.parity" scope ".shared::cta.b64 done, [%0], %1;"  \
      " @!done bra again;}" ::"r"(barrier), "r"(parity) : "memory")
#define WAIT(barrier, parity) WAIT_WITH("", barrier, parity)
#define WAIT_CLUSTER(barrier, parity) WAIT_WITH(".acquire.cluster", barrier, parity)
#define NAMED_BARRIER(id, threads) asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory")
#define CLUSTER_SYNC() \
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define CLUSTER_RANK(rank) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank))
#define SET_REGISTERS(direction, count) \
  asm volatile("setmaxnreg." #direction ".sync.aligned.u32 %0;" ::"n"(count))

// ---- copies
#define TMA_LOAD_WITH(group, destination, map, x, y, barrier)                                               \
  asm volatile("cp.async.bulk.tensor.2d" group ".shared::cluster.global.mbarrier::complete_tx::bytes"       \
               " [%0], [%1, {%2, %3}], [%4];"                                                               \
               ::"r"(destination), "l"(&map), "r"(x), "r"(y), "r"(barrier) : "memory")
#define TMA_LOAD(destination, map, x, y, barrier) TMA_LOAD_WITH("", destination, map, x, y, barrier)
#define TMA_LOAD_PAIR(destination, map, x, y, barrier) \
  TMA_LOAD_WITH(".cta_group::2", destination, map, x, y, barrier)
#define TMA_LOAD_MULTICAST(destination, map, x, y, barrier, ctas)                                           \
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"                \
               ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"                                        \
               ::"r"(destination), "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(static_cast<u16>(ctas)) : "memory")
#define BULK_LOAD(destination, source, bytes, barrier)                                                      \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"    \
               ::"r"(destination), "l"(source), "r"(bytes), "r"(barrier) : "memory")
#define TMA_STORE(map, x, y, source)                                                 \
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" \
               ::"l"(&map), "r"(x), "r"(y), "r"(source) : "memory")
#define STORE_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define STORE_WAIT_READ() asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define STORE_WAIT() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")

// ---- arithmetic
#define PACK(word, low, high) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#define EXP2(y, x) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x))

// ---- lists of 32 registers for the instructions below
#define REGISTERS_32                                                                    \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "    \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define OPERANDS_8(c, r, i) \
  c(r[i]), c(r[i + 1]), c(r[i + 2]), c(r[i + 3]), c(r[i + 4]), c(r[i + 5]), c(r[i + 6]), c(r[i + 7])
#define OPERANDS_32(c, r) OPERANDS_8(c, r, 0), OPERANDS_8(c, r, 8), OPERANDS_8(c, r, 16), OPERANDS_8(c, r, 24)
#define IN_OUT_FLOAT(x) "+f"(x)
#define OUT_WORD(x) "=r"(x)
#define IN_WORD(x) "r"(x)

// ---- wgmma: 64x64 += 64x16 * (64x16)^T, bf16, both operands in shared memory, K-major
#define WGMMA(d, a, b, accumulate)                                                                        \
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %34, 0;"                                             \
               " wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGISTERS_32 ", %32, %33, p, 1, 1, 0, 0;}" \
               : OPERANDS_32(IN_OUT_FLOAT, d) : "l"(a), "l"(b), "r"(static_cast<u32>(accumulate)) : "memory")
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WGMMA_WAIT(d, pending) \
  asm volatile("wgmma.wait_group.sync.aligned %32;" : OPERANDS_32(IN_OUT_FLOAT, d) : "n"(pending) : "memory")
// rows of 128 bytes, 128-byte swizzle, groups of eight rows 1024 bytes apart
#define WGMMA_OPERAND(address) ((1ull << 62) | (64ull << 32) | (((address) & 0x3ffff) >> 4))

// ---- tcgen05
#define TMEM_ALLOC(group, slot, columns)                                                                    \
  asm volatile("tcgen05.alloc.cta_group::" #group ".sync.aligned.shared::cta.b32 [%0], %1;"                  \
               ::"r"(slot), "r"(columns) : "memory")
#define TMEM_RELINQUISH(group) \
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::" #group ".sync.aligned;" ::: "memory")
#define TMEM_DEALLOC(group, columns_at, columns)                                                            \
  asm volatile("tcgen05.dealloc.cta_group::" #group ".sync.aligned.b32 %0, %1;"                              \
               ::"r"(columns_at), "r"(columns) : "memory")
#define FENCE_BEFORE() asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define FENCE_AFTER() asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define TMEM_LOAD(r, at) \
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 " REGISTERS_32 ", [%32];" \
               : OPERANDS_32(OUT_WORD, r) : "r"(at) : "memory")
#define TMEM_STORE(at, r) \
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], " REGISTERS_32 ";" \
               ::OPERANDS_32(IN_WORD, r), "r"(at) : "memory")
#define TMEM_WAIT_LOADS() asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define TMEM_WAIT_STORES() asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define MMA_WITH(group, open, close, constraint, d, a, b, shape, accumulate)                                 \
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0;"                                                 \
               " tcgen05.mma.cta_group::" group ".kind::f16 [%0], " open "%1" close ", %2, %3, p;}"        \
               ::"r"(d), constraint(a), "l"(b), "r"(shape), "r"(static_cast<u32>(accumulate)) : "memory")
#define MMA(d, a, b, shape, accumulate) MMA_WITH("1", "", "", "l", d, a, b, shape, accumulate)
#define MMA_PAIR(d, a, b, shape, accumulate) MMA_WITH("2", "", "", "l", d, a, b, shape, accumulate)
#define MMA_A_IN_TMEM(d, a, b, shape, accumulate) MMA_WITH("1", "[", "]", "r", d, a, b, shape, accumulate)
#define COMMIT(barrier)                                                                                     \
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory")
#define COMMIT_PAIR(barrier)                                                                                \
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"   \
               " [%0], %1;" ::"r"(barrier), "h"(static_cast<u16>(3)) : "memory")
// as WGMMA_OPERAND; `stripe` bytes from one group of 64 columns to the next where N is contiguous
#define MMA_OPERAND(address) ((2ull << 61) | (1ull << 46) | (64ull << 32) | (((address) & 0x3ffff) >> 4))
#define MMA_OPERAND_TRANSPOSED(address, stripe) (MMA_OPERAND(address) | (static_cast<u64>(stripe) >> 4 << 16))
// bf16 inputs, float accumulators
#define MMA_SHAPE(m, n) ((1u << 4) | (1u << 7) | (1u << 10) | ((n) / 8u << 17) | ((m) / 16u << 24))
#define TRANSPOSED_B (1u << 16)
