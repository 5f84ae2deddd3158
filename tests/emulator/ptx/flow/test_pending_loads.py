"""Which loads count as complete at a release."""

from __future__ import annotations

import pytest

from fa4gen.emulator.ptx.flow.pending_loads import PendingLoads
from fa4gen.emulator.ptx.inline import flatten
from fa4gen.emulator.ptx.parser import parse_module
from tests.emulator.kernel import kernel

MATRICES = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r10];"
PRODUCT = (
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r20, %r21, %r22, %r23}, "
    "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r20, %r21, %r22, %r23};"
)
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r11];"
STORE = "st.global.b32 [%d0], %r20;"


def is_open(*lines: str) -> bool:
    """Whether the first load may be under way at the last arrival."""
    function = flatten(parse_module(kernel("\n".join(lines), params=())), "k")
    pending = PendingLoads(function)
    release = [one for one in function.instructions if one.text.startswith("mbarrier.arrive")][-1]
    (load, *_) = pending.loads
    assert pending.is_open(load, release) <= pending.any_open(release)
    return pending.is_open(load, release)


@pytest.mark.parametrize(("between", "expected"), [
    ((), True),
    # so it was on the H200: ptxas puts the arrival before products that come before it in PTX
    ((PRODUCT,), True),
    (("mov.b32 %r9, %r1;",), True),
    ((PRODUCT, STORE), False),
    (("st.shared.b32 [%r12], %r2;",), False),
    # ptxas may keep local memory in registers
    (("st.local.b32 [%r12], %r2;",), True),
    (("st.shared.b32 [%r1], %r12;",), False),
    (("st.shared.b32 [%r12], %r13;",), True),
    ((PRODUCT, "setp.ne.u32 %p1, %r20, 0;"), True),
    ((PRODUCT, "setp.ne.u32 %p1, %r20, 0;", "@%p1 bra ON;", "ON:"), False),
    ((PRODUCT, "add.f32 %r30, %r20, %r21;", "shfl.sync.bfly.b32 %r31, %r30, 1, 31, -1;",
      "st.shared.b32 [%r12], %r31;"), False),
    (("ld.shared.b32 %r14, [%r2];",), False),
])  # fmt: skip
def test_what_shows_that_a_load_is_complete(between, expected) -> None:
    assert is_open(MATRICES, *between, ARRIVE, PRODUCT, STORE) is expected


def test_an_arrival_that_needs_the_value() -> None:
    tied = "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r11];"
    assert not is_open(MATRICES, PRODUCT, "setp.ne.u32 %p1, %r20, -1;", tied, STORE)
    assert is_open(MATRICES, PRODUCT, "setp.ne.u32 %p1, %r5, -1;", tied, STORE)


def test_one_path_of_two_is_not_enough() -> None:
    lines = (MATRICES, "@%p1 bra JOIN;", "st.shared.b32 [%r12], %r1;", "JOIN:", ARRIVE, STORE)
    assert is_open(*lines, PRODUCT)
    # but a path without the load asks for nothing
    lines = ("@%p1 bra JOIN;", MATRICES, PRODUCT, "JOIN:", "st.shared.b32 [%r12], %r20;", ARRIVE)
    assert not is_open(*lines)


@pytest.mark.parametrize("first", [True, False])
def test_sums_of_a_loop_need_the_loads_of_every_turn(first) -> None:
    """The sum of the turns before does not need what this turn has loaded."""
    before, after = ((), (PRODUCT,)) if first else ((PRODUCT,), ())
    loop = ("AGAIN:", MATRICES, *before, "st.shared.b32 [%r12], %r20;", *after, ARRIVE,
            "@%p1 bra AGAIN;")  # fmt: skip
    assert is_open(*loop, STORE) is first


def test_waits_for_loads_from_tensor_memory() -> None:
    def opens(*between: str) -> bool:
        lines = ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];", *between, ARRIVE)
        text = kernel("\n".join((*lines, "st.global.b32 [%d0], %r1;")), (), target="sm_100a")
        function = flatten(parse_module(text), "k")
        pending = PendingLoads(function)
        return any(pending.any_open(one) for one in function.instructions if "arrive" in one.text)

    assert opens()
    assert not opens("tcgen05.wait::ld.sync.aligned;")
    assert not opens("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};")


def test_what_nobody_uses_and_private_memory_are_not_followed() -> None:
    text = "ld.shared.b32 %r1, [%r2]; ld.local.b32 %r3, [%r4]; add.u32 %r5, %r3, 1;"
    assert PendingLoads(flatten(parse_module(kernel(text, ())), "k")).loads == []
