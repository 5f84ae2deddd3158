"""Kernels in Gluon, where layouts, barriers, copies and roles are the author's."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    get_tmem_reg_layout,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def scaled(source, out, factor, steps, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """Tiles of rows through two slots: copied in, scaled, copied out while the next one comes."""
    kind: gl.constexpr = source.dtype
    slots = gl.allocate_shared_memory(kind, [2, ROWS, COLUMNS], source.layout)
    result = gl.allocate_shared_memory(kind, [ROWS, COLUMNS], out.layout)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for index in gl.static_range(2):
        mbarrier.init(full.index(index), count=1)
    fence_async_shared()
    layout: gl.constexpr = gl.BlockedLayout(
        [1, 8], [32 * 8 // COLUMNS, COLUMNS // 8], [4, 1], [1, 0]
    )
    first = gl.program_id(0) * steps
    mbarrier.expect(full.index(0), source.block_type.nbytes)
    tma.async_copy_global_to_shared(source, [first * ROWS, 0], full.index(0), slots.index(0))
    for step in range(steps):
        slot = step % 2
        more = step + 1 < steps
        coming = (step + 1) % 2
        mbarrier.expect(full.index(coming), source.block_type.nbytes, pred=more)
        tma.async_copy_global_to_shared(
            source,
            [(first + step + 1) * ROWS, 0],
            full.index(coming),
            slots.index(coming),
            pred=more,
        )
        mbarrier.wait(full.index(slot), step // 2 & 1)
        value = slots.index(slot).load(layout)
        tma.store_wait(pendings=0)
        gl.thread_barrier()
        result.store((value.to(gl.float32) * factor).to(kind))
        fence_async_shared()
        gl.thread_barrier()
        tma.async_copy_shared_to_global(out, [(first + step) * ROWS, 0], result)
    tma.store_wait(pendings=0)


@gluon.jit
def product_wgmma(
    a_map,
    b_map,
    c_map,
    steps,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    DEPTH: gl.constexpr,
    STAGES: gl.constexpr,
):
    """C [m, n] of A [m, k] and B [n, k]: wgmma over a ring that the same warpgroup fills."""
    kind: gl.constexpr = a_map.dtype
    a_slots = gl.allocate_shared_memory(kind, [STAGES, ROWS, DEPTH], a_map.layout)
    b_slots = gl.allocate_shared_memory(kind, [STAGES, COLUMNS, DEPTH], b_map.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for index in gl.static_range(STAGES):
        mbarrier.init(full.index(index), count=1)
    fence_async_shared()
    row = gl.program_id(0) * ROWS
    column = gl.program_id(1) * COLUMNS
    for ahead in gl.static_range(STAGES):
        _load(a_map, b_map, row, column, ahead, a_slots, b_slots, full, ahead, ahead < steps, DEPTH)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLUMNS, 16])
    total = gl.zeros((ROWS, COLUMNS), gl.float32, layout)
    for step in range(steps):
        slot = step % STAGES
        mbarrier.wait(full.index(slot), step // STAGES & 1)
        total = warpgroup_mma(
            a_slots.index(slot), b_slots.index(slot).permute((1, 0)), total, is_async=True
        )
        total = warpgroup_mma_wait(0, deps=(total,))
        coming = step + STAGES
        _load(
            a_map, b_map, row, column, coming, a_slots, b_slots, full, slot, coming < steps, DEPTH
        )
    result = gl.allocate_shared_memory(kind, [ROWS, COLUMNS], c_map.layout)
    result.store(total.to(kind))
    fence_async_shared()
    gl.thread_barrier()
    tma.async_copy_shared_to_global(c_map, [row, column], result)
    tma.store_wait(pendings=0)


@gluon.jit
def _load(
    a_map, b_map, row, column, step, a_slots, b_slots, full, slot, wanted, DEPTH: gl.constexpr
):
    """Copy the operands of a step into a slot, where it is wanted."""
    bar = full.index(slot)
    mbarrier.expect(bar, a_map.block_type.nbytes + b_map.block_type.nbytes, pred=wanted)
    tma.async_copy_global_to_shared(
        a_map, [row, step * DEPTH], bar, a_slots.index(slot), pred=wanted
    )
    tma.async_copy_global_to_shared(
        b_map, [column, step * DEPTH], bar, b_slots.index(slot), pred=wanted
    )


@gluon.jit
def _load_role(
    a_map, b_map, row, column, steps, a_slots, b_slots, full, empty, DEPTH: gl.constexpr
):
    stages: gl.constexpr = full.shape[0]
    for step in range(steps):
        slot = step % stages
        mbarrier.wait(empty.index(slot), step // stages & 1 ^ 1)
        _load(a_map, b_map, row, column, step, a_slots, b_slots, full, slot, True, DEPTH)


@gluon.jit
def _multiply_role(steps, a_slots, b_slots, full, empty, sums, done):
    stages: gl.constexpr = full.shape[0]
    for step in range(steps):
        slot = step % stages
        mbarrier.wait(full.index(slot), step // stages & 1)
        tcgen05_mma(
            a_slots.index(slot), b_slots.index(slot).permute((1, 0)), sums, use_acc=step != 0
        )
        tcgen05_commit(empty.index(slot))
    tcgen05_commit(done)


@gluon.jit
def _store_role(c_map, row, column, sums, done, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    kind: gl.constexpr = c_map.dtype
    layout: gl.constexpr = get_tmem_reg_layout(
        gl.float32, (ROWS, COLUMNS), sums.layout, gl.num_warps()
    )
    result = gl.allocate_shared_memory(kind, [ROWS, COLUMNS], c_map.layout)
    mbarrier.wait(done, 0)
    result.store(sums.load(layout).to(kind))
    fence_async_shared()
    gl.thread_barrier()
    tma.async_copy_shared_to_global(c_map, [row, column], result)
    tma.store_wait(pendings=0)


@gluon.jit
def product_tcgen05(
    a_map,
    b_map,
    c_map,
    steps,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    DEPTH: gl.constexpr,
    STAGES: gl.constexpr,
):
    """C of A and B as above: a role that copies, one that multiplies, one that stores."""
    kind: gl.constexpr = a_map.dtype
    a_slots = gl.allocate_shared_memory(kind, [STAGES, ROWS, DEPTH], a_map.layout)
    b_slots = gl.allocate_shared_memory(kind, [STAGES, COLUMNS, DEPTH], b_map.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for index in gl.static_range(STAGES):
        mbarrier.init(full.index(index), count=1)
        mbarrier.init(empty.index(index), count=1)
    mbarrier.init(done, count=1)
    fence_async_shared()
    row = gl.program_id(0) * ROWS
    column = gl.program_id(1) * COLUMNS
    sums = allocate_tensor_memory(
        gl.float32, [ROWS, COLUMNS], TensorMemoryLayout([ROWS, COLUMNS], col_stride=1)
    )
    gl.warp_specialize(
        [
            (_store_role, (c_map, row, column, sums, done, ROWS, COLUMNS)),
            (
                _load_role,
                (a_map, b_map, row, column, steps, a_slots, b_slots, full, empty, DEPTH),
            ),
            (_multiply_role, (steps, a_slots, b_slots, full, empty, sums, done)),
        ],
        [1, 1],
        [24, 24],
    )
