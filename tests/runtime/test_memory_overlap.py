"""Overlap is decided exactly: compared with the sets of bytes that the elements take."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.runtime.memory_overlap import may_overlap, may_overlap_itself
from fa4gen.runtime.tensor_view import TensorView


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


def test_an_array_without_elements_shares_nothing_however_large_the_rest_of_its_extents_are():
    empty = TensorView(1000, (2**31, 2**31, 0, 64), (128, 128, 128, 2), "bfloat16", 0)
    other = TensorView(900, (1000,), (2,), "bfloat16", 0)
    assert not may_overlap(empty, 2, other, 2)
    assert not may_overlap(other, 2, empty, 2)


def test_interleaved_heads_of_almost_equal_batches_are_kept_apart():
    """More than the search takes when it goes from element to element instead of row to row."""
    out = TensorView(2**46 + 384, (2, 1, 1, 64), (3412992, 512, 128, 2), "bfloat16", 0)
    key = TensorView(2**46 + 128, (2, 6666, 1, 64), (3413008, 512, 128, 2), "bfloat16", 0)
    assert not may_overlap(out, 2, key, 2)


def test_what_takes_too_long_to_search_counts_as_overlap():
    wide = TensorView(1000, (2**31, 2**31, 2**31), (3, 5, 7), "bfloat16", 0)
    assert may_overlap(wide, 2, wide, 2)
    extents = (97, 89, 83, 79, 73)
    odd = TensorView(2**40 + 1, extents, (10007, 30011, 70001, 110017, 150011), "bfloat16", 0)
    even = TensorView(2**40, extents, (10009, 30013, 70003, 110023, 150053), "bfloat16", 0)
    assert may_overlap(odd, 1, even, 1)
