"""Atomic operations: the same lanes one after the other, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Report
from tests.emulator import kernel

# %d20: the lane's place, of those that the third argument numbers; %d21: its result
_HEAD = """
    mov.u32 %r20, %tid.x; mul.wide.u32 %d22, %r20, 4; add.u64 %d22, %d2, %d22;
    ld.global.b32 %r21, [%d22]; mul.wide.u32 %d20, %r21, {size}; add.u64 %d20, %d0, %d20;
    mul.wide.u32 %d21, %r20, {size}; add.u64 %d21, %d1, %d21;
    add.u32 %r1, %r20, 5; cvt.u64.u32 %d5, %r1; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f64.u32 %d6, %r1;
"""


def launch(body: str, memory: Any, out: Any, at: Any, size: int, **options: Any) -> Report:
    text = ".reg .f32 %f<8>;" + _HEAD.format(size=size) + body
    return kernel.launch(text, memory, out, np.asarray(at, np.uint32), block=len(at), **options)


PLACES = np.random.default_rng(0).integers(0, 6, 64)
OPERATIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "add.u32": (np.uint32, lambda a, b: (a + b) % 2**32),
    "add.s32": (np.int32, lambda a, b: (a + b + 2**31) % 2**32 - 2**31),
    "add.u64": (np.uint64, lambda a, b: (a + b) % 2**64),
    "min.s32": (np.int32, min),
    "max.s32": (np.int32, max),
    "min.u32": (np.uint32, min),
    "max.u64": (np.uint64, max),
    "min.s64": (np.int64, min),
    "and.b32": (np.uint32, lambda a, b: a & b),
    "or.b64": (np.uint64, lambda a, b: a | b),
    "xor.b32": (np.uint32, lambda a, b: a ^ b),
    "inc.u32": (np.uint32, lambda a, b: 0 if a >= b else a + 1),
    "dec.u32": (np.uint32, lambda a, b: b if a == 0 or a > b else a - 1),
    "exch.b32": (np.uint32, lambda a, b: b),
    "exch.b64": (np.uint64, lambda a, b: b),
    "add.f32": (np.float32, lambda a, b: np.float32(a) + np.float32(b)),
    "add.f64": (np.float64, lambda a, b: a + b),
}


@pytest.mark.parametrize(
    ("form", "result"),
    [(form, result) for form in OPERATIONS for result in (True, False)
     if result or not form.startswith("exch")],
)  # fmt: skip
def test_global(form: str, result: bool) -> None:
    """Lanes that share a place, in lane order, with and without a result."""
    dtype, function = OPERATIONS[form]
    size = np.dtype(dtype).itemsize
    register = {"f32": "%f1", "f64": "%d6"}.get(form[-3:], "%d5" if size == 8 else "%r1")
    kept = "%d7" if size == 8 else "%r7"
    memory = np.array([0, 3, 5, 9, 40, 70], dtype)
    wanted, olds = [item.item() for item in memory], []
    for lane, place in enumerate(PLACES):
        olds.append(wanted[place])
        wanted[place] = function(wanted[place], lane + 5)
    out = np.zeros(64, dtype)
    body = (
        f"atom.global.{form} {kept}, [%d20], {register}; st.global.b{8 * size} [%d21], {kept};"
        if result
        else f"red.relaxed.gpu.global.{form} [%d20], {register};"
    )
    assert launch(body, memory, out, PLACES, size).verdict.value == "clean"
    np.testing.assert_array_equal(memory, np.array(wanted, dtype))
    if result:
        np.testing.assert_array_equal(out, np.array(olds, dtype))


@pytest.mark.parametrize("space", ["shared", "generic"])
def test_shared(space: str) -> None:
    """A counter and a lock-like exchange in shared memory."""
    out = np.zeros(64, np.uint32)
    address = "[%d9]" if space == "generic" else "[tile]"
    dot = "" if space == "generic" else ".shared::cta"
    body = f"""setp.eq.u32 %p1, %r20, 0; @%p1 st.shared.b32 [tile], 100; bar.sync 0;
    mov.u64 %d9, tile; cvta.shared.u64 %d9, %d9;
    atom{dot}.acq_rel.cta.add.u32 %r7, {address}, 2; st.global.b32 [%d21], %r7;"""
    report = launch(body, out.copy(), out, np.zeros(64), 4, shared=16)
    assert report.verdict.value == "clean", report
    np.testing.assert_array_equal(np.sort(out), 100 + 2 * np.arange(64))


def test_compare_and_swap() -> None:
    """Only the first lane at each place finds what it expects."""
    at = np.repeat(np.arange(8), 4)
    memory, out = np.full(8, 7, np.uint32), np.zeros(32, np.uint32)
    body = "atom.global.cas.b32 %r7, [%d20], 7, %r1; st.global.b32 [%d21], %r7;"
    assert launch(body, memory, out, at, 4).verdict.value == "clean"
    np.testing.assert_array_equal(memory, np.arange(0, 32, 4) + 5)
    np.testing.assert_array_equal(
        out, np.where(np.arange(32) % 4 == 0, 7, np.arange(32) // 4 * 4 + 5)
    )


def test_compare_and_swap_of_16_and_128_bits() -> None:
    at = np.arange(4)
    memory, out = np.array([5, 6, 5, 5], np.uint16), np.zeros(4, np.uint16)
    body = "mov.b16 %h1, 5; mov.b16 %h2, 9; atom.global.cas.b16 %h3, [%d20], %h1, %h2;"
    launch(body + "st.global.b16 [%d21], %h3;", memory, out, at, 2)
    np.testing.assert_array_equal(memory, [9, 6, 9, 9])
    np.testing.assert_array_equal(out, [5, 6, 5, 5])
    memory, out = np.array([[1, 2], [1, 3]], np.uint64), np.zeros((2, 2), np.uint64)
    body = """mov.u64 %d7, 1; mov.u64 %d8, 2; mov.b128 %q1, {%d7, %d8}; mov.b128 %q2, {%d8, %d5};
    atom.global.cas.b128 %q0, [%d20], %q1, %q2; st.global.b128 [%d21], %q0;"""
    launch(body, memory, out, at[:2], 16)
    np.testing.assert_array_equal(memory, [[2, 5], [1, 3]])
    np.testing.assert_array_equal(out, [[1, 2], [1, 3]])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_pairs_of_halves(dtype: Any) -> None:
    """Each half is rounded after each addition."""
    name = "f16x2" if dtype is np.float16 else "bf16x2"
    memory = np.array([1, 1000], dtype)
    wanted = memory.copy()
    value = np.array([0.75, 3.25], dtype)
    for _ in range(40):
        wanted = (wanted.astype(np.float32) + value.astype(np.float32)).astype(dtype)
    body = f"mov.b32 %r7, {int(value.view(np.uint32)[0])}; red.global.add.noftz.{name} [%d20], %r7;"
    assert launch(body, memory, np.zeros(1), np.zeros(40), 4).verdict.value == "clean"
    np.testing.assert_array_equal(memory, wanted)


def test_vectors() -> None:
    at = np.array([0, 1, 0, 1])
    memory, out = np.arange(8, dtype=np.float32), np.zeros((4, 4), np.float32)
    body = """atom.global.add.v4.f32 {%f2,%f3,%f4,%f5}, [%d20], {%f1,%f1,0f3f000000,%f1};
    st.global.v4.f32 [%d21], {%f2,%f3,%f4,%f5};"""
    assert launch(body, memory, out, at, 16).verdict.value == "clean"
    add = np.array([[5, 5, 0.5, 5], [6, 6, 0.5, 6], [7, 7, 0.5, 7], [8, 8, 0.5, 8]])
    table = np.arange(8).reshape(2, 4)
    np.testing.assert_array_equal(memory.reshape(2, 4), table + add[:2] + add[2:])
    np.testing.assert_array_equal(out, np.concatenate([table, table + add[:2]]))


def test_maximum_of_halves_loses_nan() -> None:
    memory = np.array([np.nan, 2, -0.0, 1], np.float16)
    body = "red.global.max.noftz.v2.f16x2 [%d20], {%r7, %r8};"
    value = np.array([3, np.nan, 0.0, -5], np.float16).view(np.uint32)
    body = f"mov.b32 %r7, {value[0]}; mov.b32 %r8, {value[1]};" + body
    launch(body, memory, np.zeros(1), [0], 8)
    np.testing.assert_array_equal(memory.view(np.uint16), np.array([3, 2, 0, 1], "f2").view("u2"))


def test_subnormals_vanish_in_global_memory_only() -> None:
    tiny = np.float32(2.0**-130)
    bits = int(tiny.view(np.uint32))
    memory, out = np.array([tiny], np.float32), np.zeros(1, np.float32)
    body = f"""mov.b32 %r7, {bits}; mov.b32 %f2, %r7; red.global.add.f32 [%d20], %f2;
    st.shared.f32 [tile], %f2; red.shared.add.f32 [tile], %f2; ld.shared.f32 %f3, [tile];
    st.global.f32 [%d21], %f3;"""
    launch(body, memory, out, [0], 4, shared=16)
    assert memory[0] == 0
    assert out[0] == 2 * tiny


def test_counter_orders_what_was_written_before() -> None:
    """The last CTA to arrive reads what the other has written: clean only with the order."""
    body = """
    .reg .u32 %n<4>;
    mov.u32 %n0, %ctaid.x; mul.wide.u32 %d22, %n0, 4; add.u64 %d22, %d0, %d22;
    add.u32 %n1, %n0, 41; st.global.b32 [%d22], %n1;
    atom.ORDER.gpu.global.add.u32 %n2, [%d1], 1; setp.ne.u32 %p1, %n2, 1; @%p1 bra END;
    ld.global.v2.b32 {%r1, %r2}, [%d0]; add.u32 %r1, %r1, %r2; st.global.b32 [%d1+4], %r1;
    END:"""
    verdicts = {}
    for order in ("acq_rel", "relaxed"):
        state = np.zeros(2, np.uint32)
        text = body.replace("ORDER", order)
        found = kernel.reported(text, np.zeros(2, np.uint32), state, block=1, grid=2)
        assert state[1] == 83
        verdicts[order] = set(found)
    assert verdicts == {"acq_rel": set(), "relaxed": {"race"}}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("red.global.add.u32 [%d20+4], 1;", "out-of-bounds"),
        ("red.global.add.u64 [%d20+4], 1;", "misaligned"),
        (".local .b8 x[8]; mov.u64 %d7, x; cvta.local.u64 %d7, %d7; red.add.u32 [%d7], 1;",
         "illegal-instruction"),
    ],
)  # fmt: skip
def test_bad_places(text: str, kind: str) -> None:
    assert kernel.kinds(launch(text, np.zeros(1, np.uint32), np.zeros(1), [0], 4)) == [kind]
