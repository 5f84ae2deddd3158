"""Moves, packing, unpacking and address spaces."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator.state.memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from tests.emulator.lanes import execute

WORDS = np.uint32([0x01020304, 0xFFFFFFFF, 0x80000000])


@pytest.mark.parametrize("kind", ["b32", "u32", "s32", "f32"])
def test_words(kind):
    np.testing.assert_array_equal(execute(f"mov.{kind} %r2, %r1;", "r2", r1=WORDS), WORDS)


def test_constants():
    assert execute("mov.b16 %h1, 0x1234;", "h1")[0] == 0x1234
    assert execute("mov.s16 %h1, -2;", "h1")[0] == 0xFFFE
    assert execute("mov.u32 %r1, -1;", "r1")[0] == 0xFFFFFFFF
    assert execute("mov.f32 %r1, 0f7FC00001;", "r1")[0] == 0x7FC00001
    assert execute("mov.b32 %r1, 0f3F800000;", "r1")[0] == 0x3F800000
    assert execute("mov.f64 %d1, 0d4000000000000000;", "d1")[0] == 0x4000000000000000
    assert execute("mov.b64 %d1, 0x123456789ABCDEF0;", "d1")[0] == 0x123456789ABCDEF0


def test_predicates():
    p = np.array([True, False])
    assert execute("mov.pred %p2, %p1;", "p2", p1=p).tolist() == [True, False]
    assert execute("mov.pred %p2, !%p1;", "p2", p1=p).tolist() == [False, True]
    assert execute("mov.pred %p2, 1;", "p2", p1=p).tolist() == [True, True]


def test_special_registers():
    lanes = np.zeros(3, np.uint32)
    assert execute("mov.u32 %r2, %tid.x;", "r2", r1=lanes).tolist() == [0, 1, 2]
    assert execute("mov.u16 %h2, %tid.x;", "h2", r1=lanes).tolist() == [0, 1, 2]
    assert execute("mov.u64 %d2, %tid.x;", "d2", r1=lanes).tolist() == [0, 1, 2]
    assert execute("mov.b32 %r2, %ctaid.x;", "r2", r1=lanes).tolist() == [3, 3, 3]


def test_pack():
    assert execute("mov.b32 %r1, {%h1, %h2};", "r1", h1=np.uint16(1), h2=np.uint16(2))[0] == 0x20001
    found = execute("mov.b64 %d1, {%r1, %r2};", "d1", r1=WORDS, r2=WORDS[::-1].copy())
    assert found.tolist() == [0x8000000001020304, 0xFFFFFFFFFFFFFFFF, 0x0102030480000000]
    quarters = {f"h{n}": np.uint16(n) for n in range(1, 5)}
    assert execute("mov.b64 %d1, {%h1, %h2, %h3, %h4};", "d1", **quarters)[0] == 0x4000300020001
    assert execute("mov.b32 %r1, {%h1, 7};", "r1", h1=np.uint16(5))[0] == 0x70005
    assert (
        execute("mov.b16 %h3, {%h1, %h2};", "h3", h1=np.uint16(0xAB), h2=np.uint16(0xCD))[0]
        == 0xCDAB
    )


def test_unpack():
    rows = {"d1": np.uint64([0x0102030405060708, 0xFFFEFFFDFFFCFFFB])}
    low, high = execute("mov.b64 {%r1, %r2}, %d1;", "r1 r2", **rows)
    assert low.tolist() == [0x05060708, 0xFFFCFFFB]
    assert high.tolist() == [0x01020304, 0xFFFEFFFD]
    assert execute("mov.b64 {_, %r2}, %d1;", "r2", **rows).tolist() == high.tolist()
    first, last = execute("mov.b64 {%h1, %h2, %h3, %h4}, %d1;", "h1 h4", **rows)
    assert (first.tolist(), last.tolist()) == ([0x0708, 0xFFFB], [0x0102, 0xFFFE])
    a, b = execute("mov.b32 {%h1, %h2}, %r1;", "h1 h2", r1=WORDS)
    assert (a.tolist(), b.tolist()) == ([0x0304, 0xFFFF, 0], [0x0102, 0xFFFF, 0x8000])
    parts = execute("mov.b32 {%h1, %h2, %h3, %h4}, %r1;", "h1 h2 h3 h4", r1=np.uint32(0x04030201))
    assert [p[0] for p in parts] == [1, 2, 3, 4]


def test_unpack_constant():
    low, high = execute("mov.b64 {%r1, %r2}, 0x123456789;", "r1 r2")
    assert (low[0], high[0]) == (0x23456789, 1)


def test_128_bits():
    rows = {"d1": np.uint64([1, 2, 3]), "d2": np.uint64([4, 5, 6])}
    text = """
        mov.b128 %q1, {%d1, %d2};
        mov.b128 %q2, %q1;
        mov.b128 {%d3, %d4}, %q2;
        mov.b128 {_, %d5}, %q2;
    """
    low, high, again = execute(text, "d3 d4 d5", **rows)
    assert low.tolist() == [1, 2, 3]
    assert high.tolist() == again.tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("space", "window"),
    [
        ("global", 0),
        ("shared", SHARED_WINDOW),
        ("shared::cta", SHARED_WINDOW),
        ("shared::cluster", SHARED_WINDOW),
        ("local", LOCAL_WINDOW),
        ("param", PARAM_WINDOW),
    ],
)
def test_cvta(space, window):
    address = np.uint64([0x400, 0x1000400])
    found = execute(f"cvta.{space}.u64 %d2, %d1;", "d2", d1=address)
    np.testing.assert_array_equal(found, address + np.uint64(window))
    found = execute(f"cvta.to.{space}.u64 %d2, %d1;", "d2", d1=found)
    np.testing.assert_array_equal(found, address)


def test_symbols():
    text = ".shared .align 16 .b8 first[32]; .shared .align 16 .b8 second[16];\n"
    # the first KiB of shared memory belongs to the system; rank 1 of a cluster is seen at 1 << 24
    assert execute(text + "mov.u32 %r1, second;", "r1")[0] == 1024 + 32
    assert execute(text + "mov.u64 %d1, second+4;", "d1", rank=1)[0] == (1 << 24) + 1060
    found = execute(text + "cvta.shared.u64 %d1, second;", "d1", rank=1)[0]
    assert found == SHARED_WINDOW + (1 << 24) + 1056


def test_isspacep():
    shared = [SHARED_WINDOW + 64, SHARED_WINDOW + (1 << 24), SHARED_WINDOW + (2 << 24)]
    places = [0x10_0000_1000, *shared, LOCAL_WINDOW + 8, PARAM_WINDOW]
    expected = {
        "global": [1, 0, 0, 0, 0, 0],
        "shared": [0, 1, 1, 0, 0, 0],
        "shared::cta": [0, 1, 1, 0, 0, 0],
        "shared::cluster": [0, 1, 1, 1, 0, 0],
        "local": [0, 0, 0, 0, 1, 0],
        "param": [0, 0, 0, 0, 0, 1],
    }
    for space, wanted in expected.items():
        found = execute(f"isspacep.{space} %p1, %d1;", "p1", rank=1, d1=np.uint64(places))
        assert found.tolist() == wanted, space
