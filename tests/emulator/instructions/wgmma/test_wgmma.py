"""wgmma beyond the numbers, which tests/emulator/hardware compares with an H200."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.kernel import kernel, run

# A (64 x 16) at offset 0 and B (8 x 16) at 4096, both K-major without swizzle, core matrix by core
# matrix: LBO 128 bytes between the halves of K, SBO 256 between groups of 8 rows.
BODY = """
    mov.u32 %r20, tile; mov.u32 %r21, %tid.x;
    shl.b32 %r22, %r21, 4; cvt.u64.u32 %d5, %r22; add.u64 %d6, %d0, %d5; add.u32 %r23, %r20, %r22;
    ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%d6];
    st.shared.v4.b32 [%r23], {%r24, %r25, %r26, %r27};
    setp.gt.u32 %p1, %r21, 15;
    @%p1 bra FILLED;
    ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%d6+2048];
    st.shared.v4.b32 [%r23+4096], {%r24, %r25, %r26, %r27};
FILLED:
    PROXY
    bar.sync 0;
    shr.u32 %r30, %r20, 4; or.b32 %r31, %r30, 0x80000; mov.b64 %d10, {%r31, 0x10};
    add.u32 %r32, %r31, 256; mov.b64 %d11, {%r32, 0x10};
    mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;
    wgmma.fence.sync.aligned;
    GUARD wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
        {%r1, %r2, %r3, %r4}, %d10, %d11, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    EARLY
    wgmma.wait_group.sync.aligned 0;
    LATE
    shl.b32 %r33, %r21, 4; cvt.u64.u32 %d7, %r33; add.u64 %d8, %d1, %d7;
    st.global.v4.b32 [%d8], {%r1, %r2, %r3, %r4};
"""
SPOIL = "bar.sync 1; st.shared.b32 [%r23], %r21; st.shared.b32 [%r23+4096], %r21;"


def matrix_kernel(
    early: str = "", late: str = "", guard: str = "", proxy: str = "fence.proxy.async.shared::cta;"
) -> str:
    body = BODY.replace("EARLY", early).replace("LATE", late).replace("GUARD", guard)
    return kernel(
        body.replace("PROXY", proxy), ("u64", "u64"), shared=8192, directives=".maxntid 128"
    )


def core_matrices(matrix: np.ndarray) -> np.ndarray:
    rows = matrix.shape[0]
    return matrix.reshape(rows // 8, 8, 2, 8).transpose(0, 2, 1, 3).ravel()


def launch(ptx: str, **options):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 16)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((8, 16)).astype(ml_dtypes.bfloat16)
    data = np.concatenate([core_matrices(a), core_matrices(b)])
    out = np.zeros((128, 4), np.float32)
    report = run(ptx, data, out, block=128, **options)
    lane, register = np.indices((128, 4))
    rows = lane // 32 * 16 + lane % 32 // 4 + 8 * (register // 2)
    columns = 2 * (lane % 4) + register % 2
    product = a.astype(np.float32) @ b.astype(np.float32).T
    return report, bool(np.allclose(out, product[rows, columns], atol=1e-4))


def kinds(report) -> set[str]:
    return {finding.kind for finding in report.findings}


@pytest.mark.parametrize("schedule", ["uniform", "eager", "lazy"])
def test_a_product(schedule: str) -> None:
    report, right = launch(matrix_kernel(), schedule=schedule)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert right


def test_operands_overwritten_in_flight_are_a_race_and_late_ones_are_read_late() -> None:
    for seed in range(5):
        report, _ = launch(matrix_kernel(early=SPOIL), seed=seed)
        assert "race" in kinds(report)
    _, right = launch(matrix_kernel(early=SPOIL), schedule="lazy", checks=False)
    assert not right
    _, right = launch(matrix_kernel(early=SPOIL), schedule="eager", checks=False)
    assert right


def test_operands_may_be_overwritten_once_the_product_is_retired() -> None:
    report, right = launch(matrix_kernel(late=SPOIL))
    assert report.verdict is Verdict.CLEAN, str(report)
    assert right


def test_stored_operands_need_a_proxy_fence() -> None:
    report, _ = launch(matrix_kernel(proxy=""))
    assert "missing-proxy-fence" in kinds(report)


def test_a_product_by_three_warps_is_told() -> None:
    report, _ = launch(matrix_kernel(guard="setp.lt.u32 %p2, %r21, 96; @%p2 "))
    assert "partial-warp" in kinds(report)


def test_an_operand_outside_shared_memory() -> None:
    ptx = matrix_kernel().replace("add.u32 %r32, %r31, 256", "add.u32 %r32, %r31, 1000")
    report, _ = launch(ptx)
    assert kinds(report) == {"out-of-bounds"}


def test_copies_in_flight_hold_the_product() -> None:
    copy = "mov.b32 %r40, %r1; mov.b32 %r41, %r2;"
    back = "mov.b32 %r2, %r41; mov.b32 %r1, %r40;"
    for schedule in ("uniform", "eager", "lazy"):
        report, right = launch(matrix_kernel(early=copy, late=back), schedule=schedule)
        assert report.verdict is Verdict.CLEAN, str(report)
        assert right


def test_accumulators_used_in_flight_are_told_under_every_schedule() -> None:
    for schedule in ("uniform", "eager", "lazy"):
        report, _ = launch(matrix_kernel(early="add.f32 %r50, %r1, %r2;"), schedule=schedule)
        assert kinds(report) == {"wgmma-registers"}


def test_a_wait_for_more_groups_than_there_are_retires_none() -> None:
    commit = "wgmma.commit_group.sync.aligned;"
    wait = commit * 2 + "wgmma.wait_group.sync.aligned 4;"
    report, _ = launch(matrix_kernel(early=wait + SPOIL))
    assert "race" in kinds(report)
    _, right = launch(matrix_kernel(early=wait + SPOIL), schedule="lazy", checks=False)
    assert not right
    retired = wait.replace("4;", "2;")
    report, right = launch(matrix_kernel(early=retired + SPOIL), schedule="lazy")
    assert report.verdict is Verdict.CLEAN, str(report)
    assert right


def test_lanes_with_different_descriptors_or_scales() -> None:
    ptx = matrix_kernel()
    other = ptx.replace("add.u32 %r32, %r31, 256;", "and.b32 %r32, %r21, 1; "
                        "add.u32 %r32, %r32, %r31; add.u32 %r32, %r32, 256;")  # fmt: skip
    assert "descriptor" in kinds(launch(other)[0])
    scaled = ptx.replace("%d11, 1,", "%d11, %p1,")
    assert "illegal-instruction" in kinds(launch(scaled)[0])
