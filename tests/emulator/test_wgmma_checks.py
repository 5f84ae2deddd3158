from __future__ import annotations

import pytest

from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
from fa4gen.emulator.wgmma_checks import check_registers, find_flights
from tests.emulator.kernel import kernel

D = "{%r1, %r2, %r3, %r4}"
MMA = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {D}, %d1, %d2, 1, 1, 1, 0, 0;"
MMA_A = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
    f"{D}, {{%r5, %r6, %r7, %r8}}, %d2, 1, 1, 1, 0;"
)
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"


def wait(newest: int) -> str:
    return f"wgmma.wait_group.sync.aligned {newest};"


def function(*lines: str):
    return flatten(parse_module(kernel("\n".join(lines), params=())), "k")


def kinds(*lines: str) -> list[str]:
    return [kind for kind, _, _ in check_registers(function(*lines))]


def test_a_correct_chain() -> None:
    assert kinds(FENCE, MMA, MMA, COMMIT, wait(0), "add.f32 %r1, %r1, %r2;") == []


@pytest.mark.parametrize("touch", ["add.f32 %r9, %r1, %r1;", "st.shared.b32 [%r10], %r4;",
                                   "mul.f32 %r2, %r9, %r9;"])  # fmt: skip
def test_accumulators_touched_in_flight(touch: str) -> None:
    assert kinds(FENCE, MMA, COMMIT, touch, wait(0)) == ["wgmma-registers"]


def test_a_wait_that_leaves_the_group_in_flight() -> None:
    use = "add.f32 %r9, %r1, %r1;"
    assert kinds(FENCE, MMA, COMMIT, wait(1), use, wait(0)) == ["wgmma-registers"]
    other = MMA.replace(D, "{%r11, %r12, %r13, %r14}")
    assert kinds(FENCE, MMA, COMMIT, other, COMMIT, wait(1), use, wait(0)) == []


def test_an_uncommitted_product_is_not_retired_by_a_wait() -> None:
    assert kinds(FENCE, MMA, wait(0), "add.f32 %r9, %r1, %r1;", COMMIT, wait(0)) == [
        "wgmma-registers"
    ]


def test_register_operands_may_be_read_but_not_written_in_flight() -> None:
    assert kinds(FENCE, MMA_A, COMMIT, "add.u32 %r9, %r5, 1;", wait(0)) == []
    assert kinds(FENCE, MMA_A, COMMIT, "add.u32 %r5, %r9, 1;", wait(0)) == ["wgmma-registers"]


def test_copies_in_flight_are_transparent_and_noted() -> None:
    flights = find_flights(function(FENCE, MMA, COMMIT, "mov.b32 %r20, %r1;", wait(0)))
    assert flights.wrong == []
    assert len(flights.copied) == 1


def test_a_loop_carries_accumulators_in_flight() -> None:
    loop = ("LOOP:", MMA, COMMIT, wait(1), "setp.eq.u32 %p1, %r30, 0;", "@%p1 bra LOOP;")
    assert kinds(FENCE, *loop, wait(0)) == []
    assert kinds(FENCE, *loop, "add.f32 %r9, %r1, %r1;") == ["wgmma-registers"]


def test_no_fence_before_the_first_product() -> None:
    assert kinds(MMA, COMMIT, wait(0)) == ["missing-wgmma-fence"]
    branch = "@%p1 bra SKIP;"
    assert kinds(branch, FENCE, "SKIP:", MMA, COMMIT, wait(0)) == ["missing-wgmma-fence"]
