"""Overlap is decided exactly: compared with the sets of bytes that the elements take."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.runtime.arguments import TensorView
from fa4gen.runtime.memory_overlap import may_overlap, may_overlap_itself


def bytes_of(view, element_bytes):
    taken = []
    for index in itertools.product(*map(range, view.shape)):
        start = view.pointer + sum(i * step for i, step in zip(index, view.strides, strict=True))
        taken += range(start, start + element_bytes)
    return taken


views = st.builds(
    lambda pointer, axes: TensorView(
        1000 + pointer, tuple(e for e, _ in axes), tuple(2 * s for _, s in axes), "bfloat16", 0
    ),
    st.integers(0, 40).map(lambda i: 2 * i),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), min_size=1, max_size=3),
)


@given(views, views)
def test_overlap_is_exact(a, b):
    assert may_overlap(a, 2, b, 2) == bool(set(bytes_of(a, 2)) & set(bytes_of(b, 2)))


@given(views)
def test_no_self_overlap_goes_unseen(view):
    taken = bytes_of(view, 2)
    if len(set(taken)) < len(taken):
        assert may_overlap_itself(view)


@given(st.permutations(range(4)), st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_transposed_contiguous_arrays_do_not_overlap_themselves(order, extents):
    strides = [0] * 4
    step = 2
    for axis in order:
        strides[axis] = step
        step *= extents[axis]
    assert not may_overlap_itself(TensorView(0, tuple(extents), tuple(strides), "bfloat16", 0))


def test_the_same_addresses_on_two_gpus_are_not_the_same_memory():
    view = TensorView(4096, (8,), (2,), "bfloat16", 0)
    assert may_overlap(view, 2, view, 2)
    assert not may_overlap(view, 2, view._replace(device=1), 2)


def test_elements_of_different_size():
    narrow = TensorView(4096, (4,), (8,), "bfloat16", 0)  # bytes 0, 1 of every 8
    beside = TensorView(4098, (4,), (8,), "float32", 0)  # bytes 2 to 5
    assert not may_overlap(narrow, 2, beside, 4)
    assert may_overlap(narrow, 2, beside._replace(pointer=4097), 4)
