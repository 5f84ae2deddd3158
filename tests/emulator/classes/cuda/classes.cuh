// What the kernels of the bug classes share. Each kernel is here twice in one text: FIXED(...) is
// only in the corrected twin, BROKEN(...) only in the kernel that has the mistake. Which of the two is
// compiled is said by variant.cuh.
#pragma once

#include "ptx.cuh"
#include "variant.cuh"

#define KERNEL extern "C" __global__ void
#define LANE (threadIdx.x % 32)
#define WARP (threadIdx.x / 32)

// ---- barriers
#define BARRIER_BEGIN(barrier, count) \
  if (threadIdx.x == 0) { BARRIER_INIT(barrier, count); FENCE_BARRIER_INIT(); }
#define BARRIERS_BEGIN(barrier, count, other, others) \
  if (threadIdx.x == 0) { BARRIER_INIT(barrier, count); BARRIER_INIT(other, others); FENCE_BARRIER_INIT(); }
#define NAMED_ARRIVE(id, threads) asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory")
#define BARRIER_INVALIDATE(barrier) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory")
#define ARRIVE_AT_CTA_SCOPE(barrier, rank) \
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;" \
               " mbarrier.arrive.release.cta.shared::cluster.b64 _, [remote];}" ::"r"(barrier), "r"(rank) : "memory")

// ---- shared memory
#define LDMATRIX(value, address) \
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(value) : "r"(address) : "memory")
#define LOAD_SHARED_AT(value, address, rank) \
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %1, %2;" \
               " ld.shared::cluster.b32 %0, [remote];}" : "=r"(value) : "r"(address), "r"(rank) : "memory")
#define STORE_SHARED_AT(address, rank, value) \
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;" \
               " st.shared::cluster.b32 [remote], %2;}" ::"r"(address), "r"(rank), "r"(value) : "memory")

// ---- copies
#define BULK_LOAD_MULTICAST(destination, source, bytes, barrier, ctas) \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster" \
               " [%0], [%1], %2, [%3], %4;" \
               ::"r"(destination), "l"(source), "r"(bytes), "r"(barrier), "h"(static_cast<u16>(ctas)) : "memory")
#define BULK_STORE(destination, source, bytes) \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" \
               ::"l"(destination), "r"(source), "r"(bytes) : "memory")
#define STORE_WAIT_READ_BUT(groups) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory")

// ---- wgmma: 64x8 += 64x16 * (8x16)^T, bf16; core matrices of 8 rows and 16 bytes one after the other
#define WGMMA8_OPERAND(address) ((16ull << 32) | (8ull << 16) | (((address) & 0x3ffff) >> 4))
#define WGMMA8(d, a, b) \
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory")
#define WGMMA8_REGISTERS(d, a, b) \
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory")
#define WGMMA8_WAIT(d) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory")

// ---- tensor memory: `columns` is the address of so many, freed at the end
#define TMEM_BEGIN(columns, count) \
  __shared__ u32 tmem_slot; \
  if (WARP == 0) TMEM_ALLOC(1, SHARED(&tmem_slot), count); \
  FENCE_BEFORE(); \
  __syncthreads(); \
  FENCE_AFTER(); \
  u32 columns; \
  LOAD_SHARED_WORD(columns, SHARED(&tmem_slot))
#define TMEM_END(columns, count) \
  FENCE_BEFORE(); \
  __syncthreads(); \
  FENCE_AFTER(); \
  if (WARP == 0) { TMEM_RELINQUISH(1); TMEM_DEALLOC(1, columns, count); }
#define QUARTER (WARP % 4 << 21)  // the lanes of tensor memory that belong to the warp
#define TMEM_LOAD8(r, at) \
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" \
               : OPERANDS_8(OUT_WORD, r, 0) : "r"(at) : "memory")
#define TMEM_STORE8(at, r) \
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" \
               ::OPERANDS_8(IN_WORD, r, 0), "r"(at) : "memory")
#define COMMIT_MULTICAST(barrier, ctas) \
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" \
               ::"r"(barrier), "h"(static_cast<u16>(ctas)) : "memory")
// operands of 16 columns, core matrices as for WGMMA8
#define MMA16_OPERAND(address) ((1ull << 46) | (16ull << 32) | (8ull << 16) | (((address) & 0x3ffff) >> 4))

// ---- grids and tensor maps
#define GRID_WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define MAP_ADDRESS(map, address) \
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(map), "l"(address) : "memory")
#define MAP_PUBLISH(goal, map) \
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" \
               ::"l"(goal), "r"(map) : "memory")
#define MAP_ACQUIRE(map) asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory")

// ---- clusterlaunchcontrol
#define TRY_CANCEL(response, barrier) \
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" \
               ::"r"(response), "r"(barrier) : "memory")
// 1 and the first CTA's x, or 0
#define QUERY_CANCEL(cancelled, x, response) \
  asm volatile("{ .reg .pred p; .reg .b128 r; ld.shared.b128 r, [%2];" \
               " clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %0, 1, 0, p; mov.u32 %1, 0;" \
               " @p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, r;}" \
               : "=r"(cancelled), "=r"(x) : "r"(response) : "memory")
