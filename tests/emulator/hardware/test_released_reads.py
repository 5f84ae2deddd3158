"""The first finding proved on silicon: a slot freed while ldmatrix may still read it.

Four warps read a slot by ldmatrix, with bank conflicts, and give it back by an arrival; the next
box is beyond the tensor, so that TMA fills the slot with zeros without a trip to memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Program, TensorMap
from tests.emulator.hardware.family_probes import FamilyProbe
from tests.emulator.kernel import kernel

ROWS, WORDS, WARPS = 64, 32, 4
CTAS, STEPS, LAUNCHES = 264, 64, 100
CHUNKS = [(row, chunk) for row in range(0, ROWS, 32) for chunk in range(WORDS // 4)]
VALUES = [f"%r{100 + index}" for index in range(4 * len(CHUNKS))]

PLAIN = "bar.warp.sync -1; @%p3 mbarrier.arrive.shared::cta.b64 _, [%r12];"
FENCED = f"fence.proxy.async.shared::cta; {PLAIN}"
# no sum of the numbers below has all bits set
TIED = """
    bar.warp.sync -1; selp.b32 %r23, %r22, -1, %p3; setp.ne.u32 %p5, %r23, -1;
    @%p5 mbarrier.arrive.shared::cta.b64 _, [%r12];
"""


def source(release: str, sums_first: bool) -> str:
    """The kernel: out[CTA, warp, lane] is the sum of what the lane read in all steps."""
    loads = "\n".join(
        f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{', '.join(VALUES[4 * n : 4 * n + 4])}}}, "
        f"[%r15+{128 * row + 16 * chunk}];"
        for n, (row, chunk) in enumerate(CHUNKS)
    )
    sums = "mov.b32 %r22, 0;\n" + "\n".join(f"add.u32 %r22, %r22, {one};" for one in VALUES)
    body = f"""
    mov.u32 %r10, tile; mov.u32 %r11, barriers; add.u32 %r12, %r11, 8;
    mov.u32 %r13, %tid.x; mov.u32 %r20, 0;
    setp.ne.u32 %p1, %r13, 0; @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [%r11], 1;
    mbarrier.init.shared::cta.b64 [%r12], {WARPS};
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
    setp.ge.u32 %p2, %r13, {32 * WARPS}; @%p2 bra PRODUCER;
    and.b32 %r14, %r13, 31; shl.b32 %r15, %r14, 7; add.u32 %r15, %r15, %r10;
    setp.eq.u32 %p3, %r14, 0; mov.u32 %r16, 0;
CONSUME:
    and.b32 %r21, %r20, 1;
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r11], %r21; @!%p4 bra FULL;
    {loads}
    {sums if sums_first else ""}
    {release}
    {"" if sums_first else sums}
    add.u32 %r16, %r16, %r22;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p6, %r20, %r2; @%p6 bra CONSUME;
    mov.u32 %r17, %ctaid.x; mad.lo.u32 %r17, %r17, {32 * WARPS}, %r13;
    mul.wide.u32 %d3, %r17, 4; add.u64 %d3, %d3, %d0; st.global.b32 [%d3], %r16;
    bra OVER;
PRODUCER:
    setp.ne.u32 %p2, %r13, {32 * WARPS}; @%p2 bra OVER;
LOAD:
    and.b32 %r21, %r20, 1; xor.b32 %r22, %r21, 1; mul.lo.u32 %r23, %r21, {ROWS};
EMPTY:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], %r22; @!%p4 bra EMPTY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], {4 * ROWS * WORDS};
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r10], [%d1, {{0, %r23}}], [%r11];
    add.u32 %r20, %r20, 1; setp.lt.u32 %p6, %r20, %r2; @%p6 bra LOAD;
OVER:
"""
    return kernel(
        body,
        ("u64", "tensor_map", "u32"),
        shared=4 * ROWS * WORDS,
        module=".shared .align 8 .b64 barriers[2];",
    )


def numbers() -> np.ndarray:
    return np.random.default_rng(7).integers(1, 1 << 16, (ROWS, WORDS), dtype=np.uint32)


def expected(ctas: int, steps: int) -> np.ndarray:
    """Every second step reads the numbers, those between read zeros."""
    matrices = numbers().reshape(ROWS // 8, 8, WORDS // 4, 4).sum(axis=(0, 2), dtype=np.uint32)
    return np.broadcast_to((steps + 1) // 2 * matrices.reshape(32), (ctas, WARPS, 32))


def arguments(ctas: int, steps: int) -> list[Any]:
    out = np.zeros((ctas, WARPS, 32), np.uint32)
    return [out, TensorMap(numbers(), box=(ROWS, WORDS)), np.uint32(steps)]


VARIANTS = pytest.mark.parametrize(("release", "sums_first", "verdict"), [
    pytest.param(PLAIN, False, "error", id="plain"),
    pytest.param(PLAIN, True, "error", id="sums-first"),
    pytest.param(FENCED, False, "clean", id="fenced"),
    pytest.param(TIED, True, "isa", id="tied"),
])  # fmt: skip


@VARIANTS
def test_what_the_emulator_says(release, sums_first, verdict) -> None:
    program = Program(source(release, sums_first))
    for seed, schedule in enumerate(SCHEDULES):
        given = arguments(1, 3)
        report = program.launch(
            grid=1, block=32 * (WARPS + 1), args=given, seed=seed, schedule=schedule
        )
        assert report.verdict.value == verdict, str(report)
        assert {one.kind for one in report.findings} <= {"proxy-war"}
        if verdict != "error":
            assert np.array_equal(given[0], expected(1, 3))


@pytest.mark.gpu
@VARIANTS
def test_what_the_gpu_does(gpu, release, sums_first, verdict, tmp_path) -> None:
    from tests.emulator.hardware.record_families import run

    wrong = 0
    probe = FamilyProbe(
        f"released_{verdict}_{sums_first}", source(release, sums_first),
        lambda: arguments(CTAS, STEPS), grid=CTAS, block=32 * (WARPS + 1),
    )  # fmt: skip
    for _ in range(LAUNCHES):
        out = run(probe, tmp_path)[0]
        wrong += not np.array_equal(out, expected(CTAS, STEPS))
    print(f"{wrong} of {LAUNCHES} launches differ")
    # ptxas 13 makes the same code of both plain kernels: the last sums come after the arrival
    assert (wrong > 0) == (verdict == "error")
