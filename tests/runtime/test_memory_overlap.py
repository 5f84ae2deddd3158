"""Overlap by ranges and columns, compared with the sets of bytes that the elements take."""

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
def test_no_overlap_goes_unseen(a, b):
    if set(bytes_of(a, 2)) & set(bytes_of(b, 2)):
        assert may_overlap(a, 2, b, 2)


@given(views, views)
def test_views_with_a_gap_between_them_do_not_overlap(a, b):
    taken = [bytes_of(view, 2) for view in (a, b)]
    if not all(taken) or max(taken[0]) < min(taken[1]) or max(taken[1]) < min(taken[0]):
        assert not may_overlap(a, 2, b, 2)


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.booleans(),
)
def test_columns_of_one_buffer_do_not_overlap(widths, extents, are_transposed):
    """Each view has its own heads of every row; neighbours by one element overlap."""
    pitch, begins = 2 * 3 * sum(widths), [0]
    for width in widths:
        begins.append(begins[-1] + 2 * 3 * width)
    batches, rows = extents
    axes = [(batches, 2 * rows * pitch), (2 * rows, pitch)]
    made = []
    for width, begin in zip(widths, begins, strict=False):
        own = [*axes, (width, 6), (3, 2)]
        own = own[::-1] if are_transposed else own
        shape, strides = zip(*own, strict=True)
        made.append(TensorView(4096 + begin, shape, strides, "bfloat16", 0))
    for a, b in itertools.combinations(made, 2):
        assert not may_overlap(a, 2, b, 2)
        assert not may_overlap(b, 2, a, 2)
    nearer = made[1]._replace(pointer=made[1].pointer - 2)
    assert may_overlap(made[0], 2, nearer, 2)
    assert may_overlap(nearer, 2, made[0], 2)


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
