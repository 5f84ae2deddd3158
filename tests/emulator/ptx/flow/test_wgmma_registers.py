from __future__ import annotations

import pytest

from fa4gen.emulator.ptx.flow.wgmma_registers import find_flights
from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
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
    return [kind for kind, _, _ in find_flights(function(*lines)).wrong]


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


def doubts(*lines: str) -> list[str]:
    return [kind for kind, _, _ in find_flights(function(*lines)).doubtful]


ROUND = (MMA, COMMIT, wait(0))


@pytest.mark.parametrize("touch", ["mul.f32 %r2, %r2, %r9;", "st.shared.b32 [%r10], %r4;",
                                   "mov.b32 %r3, 0;"])  # fmt: skip
def test_accumulators_touched_between_products_need_a_fence(touch: str) -> None:
    assert kinds(FENCE, *ROUND, touch, *ROUND) == ["missing-wgmma-fence"]
    assert kinds(FENCE, *ROUND, touch, FENCE, *ROUND) == []
    assert kinds(FENCE, *ROUND, *ROUND) == []


def test_operands_computed_between_products_need_a_fence() -> None:
    round_a = (MMA_A, COMMIT, wait(0))
    compute = "add.u32 %r5, %r9, 1;"
    assert kinds(FENCE, *round_a, compute, *round_a) == ["missing-wgmma-fence"]
    assert kinds(FENCE, *round_a, compute, FENCE, *round_a) == []
    assert kinds(FENCE, *round_a, "add.u32 %r9, %r5, 1;", *round_a) == []


def test_a_fence_is_missing_on_one_path_only() -> None:
    touch = "mul.f32 %r2, %r2, %r9;"
    around = ("@%p1 bra SKIP;", FENCE, "SKIP:")
    assert kinds(FENCE, *ROUND, touch, *around, *ROUND) == ["missing-wgmma-fence"]


def test_a_fence_outside_the_loop_that_scales() -> None:
    scale = "mul.f32 %r2, %r2, %r9;"
    assert kinds(FENCE, "LOOP:", *ROUND, scale, "@%p1 bra LOOP;") == ["missing-wgmma-fence"]
    assert kinds("LOOP:", FENCE, *ROUND, scale, "@%p1 bra LOOP;") == []


def test_what_a_compiler_lets_sink_below_a_fence() -> None:
    """Constants are common there, computations are for review."""
    assert kinds(FENCE, "mov.b32 %r3, 0;", *ROUND) == []
    assert doubts(FENCE, "mov.b32 %r3, 0;", *ROUND) == []
    assert kinds(FENCE, "mul.f32 %r3, %r9, %r9;", *ROUND) == []
    assert doubts(FENCE, "mul.f32 %r3, %r9, %r9;", *ROUND) == ["missing-wgmma-fence"]


def test_renamed_values_keep_their_history() -> None:
    assert kinds(FENCE, *ROUND, "mul.f32 %r20, %r2, %r9;", "mov.b32 %r2, %r20;", *ROUND) == [
        "missing-wgmma-fence"
    ]
    renamed = "mov.b32 %r20, %r1; mov.b32 %r1, %r20;"
    assert kinds(FENCE, *ROUND, renamed, *ROUND) == []


def test_a_copy_in_flight_stands_for_its_accumulator() -> None:
    copy = "mov.b32 %r20, %r1;"
    use = "add.f32 %r9, %r20, %r20;"
    assert kinds(FENCE, MMA, COMMIT, copy, wait(0), use) == []
    assert kinds(FENCE, MMA, COMMIT, copy, use, wait(0)) == ["wgmma-registers"]
    assert kinds(FENCE, MMA, COMMIT, copy, "mov.b32 %r21, %r20; add.f32 %r9, %r21, %r9;") == [
        "wgmma-registers"
    ]
    # the copy's register is reused for something else
    assert kinds(FENCE, MMA, COMMIT, copy, "mov.b32 %r20, 5;", use, wait(0)) == []


def test_accumulators_overwritten_in_flight() -> None:
    assert kinds(FENCE, MMA, COMMIT, "mov.b32 %r1, 0;", wait(0)) == ["wgmma-registers"]
    back = "mov.b32 %r20, %r1; mov.b32 %r1, %r20;"
    assert kinds(FENCE, MMA, COMMIT, back, wait(0)) == []


def test_a_chain_goes_on_under_other_names() -> None:
    names = ("%r21", "%r22", "%r23", "%r24")
    copies = [f"mov.b32 {name}, %r{index + 1};" for index, name in enumerate(names)]
    renamed = MMA.replace(D, "{" + ", ".join(names) + "}")
    chain = (FENCE, MMA, *copies, renamed, COMMIT)
    assert kinds(*chain, wait(0), "add.f32 %r9, %r21, %r22;") == []
    assert kinds(*chain, "add.f32 %r9, %r21, %r22;", wait(0)) == ["wgmma-registers"]


def test_products_that_share_some_accumulators() -> None:
    other = MMA.replace(D, "{%r4, %r11, %r12, %r13}")
    assert kinds(FENCE, MMA, other, COMMIT, wait(0)) == ["wgmma-registers"]
