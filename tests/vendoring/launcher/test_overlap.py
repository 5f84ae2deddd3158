"""Whether tensors share memory: the launcher against Python, and against all addresses."""

from __future__ import annotations

import ctypes
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.runtime.memory_overlap import may_overlap, may_overlap_itself
from fa4gen.runtime.tensor_view import TensorView

MAX_AXES = 5
quick = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


class View(ctypes.Structure):
    """memory_view."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("axes", ctypes.c_int),
        ("extents", ctypes.c_int64 * MAX_AXES),
        ("strides", ctypes.c_int64 * MAX_AXES),
        ("element_bytes", ctypes.c_int64),
    )


def in_c(view: TensorView, element_bytes: int):
    axes = len(view.shape)
    return ctypes.byref(
        View(
            view.pointer,
            axes,
            (ctypes.c_int64 * MAX_AXES)(*view.shape),
            (ctypes.c_int64 * MAX_AXES)(*view.strides),
            element_bytes,
        )
    )


@pytest.fixture
def library(launcher):
    return ctypes.CDLL(str(launcher.library))


SMALL_EXTENTS, SMALL_STRIDES = st.integers(0, 5), st.integers(0, 60)


@st.composite
def views(draw, extents=SMALL_EXTENTS, strides=SMALL_STRIDES):
    axes = draw(st.integers(1, MAX_AXES))
    shape = tuple(draw(extents) for _ in range(axes))
    steps = tuple(draw(strides) for _ in range(axes))
    return TensorView(1000 + draw(st.integers(0, 250)), shape, steps, "void", 0)


def addresses(view: TensorView, element_bytes: int) -> set[int]:
    steps = [
        range(0, stride * extent, stride) if stride else [0] * extent
        for extent, stride in zip(view.shape, view.strides, strict=True)
    ]
    return {
        view.pointer + sum(step) + byte
        for step in itertools.product(*steps)
        for byte in range(element_bytes)
    }


SIZES = st.sampled_from((1, 2, 4))


@given(views(), SIZES, views(), SIZES)
@quick
def test_no_overlap_goes_unseen(library, a, a_bytes, b, b_bytes) -> None:
    found = library.acme_test_overlap(in_c(a, a_bytes), in_c(b, b_bytes))
    assert found == library.acme_test_overlap(in_c(b, b_bytes), in_c(a, a_bytes))
    assert found == may_overlap(a, a_bytes, b, b_bytes)
    assert found or not addresses(a, a_bytes) & addresses(b, b_bytes)


large = views(
    extents=st.sampled_from((1, 2, 3, 31, 64, 128, 1000)),
    strides=st.sampled_from((2, 16, 32, 48, 256, 272, 4096, 4112, 65536, 1 << 20)),
)


@given(large, large, st.integers(0, 5000))
@quick
def test_it_agrees_with_python_on_large_tensors(library, a, b, shift) -> None:
    b = b._replace(pointer=b.pointer + 16 * shift)
    expected = may_overlap(a, 2, b, 2)
    assert library.acme_test_overlap(in_c(a, 2), in_c(b, 2)) == expected


@given(views(strides=st.sampled_from((0, 1, 2, 4, 6, 8, 16, 24, 48, 96, 200))))
@quick
def test_a_tensor_overlaps_itself_as_in_python(library, view) -> None:
    expected = 0 not in view.shape and may_overlap_itself(view)
    if 0 not in view.shape:
        assert library.acme_test_overlaps_itself(in_c(view, 2)) == expected


def test_interleaved_heads_of_one_buffer_pass_and_their_neighbours_do_not(library) -> None:
    """Query, key and value of many heads in one row: what a projection leaves behind."""
    row, head = 3 * 16 * 128 * 2, 128 * 2
    query = TensorView(0x10000, (4, 2048, 16, 128), (2048 * row, row, head, 2), "bfloat16", 0)
    key = query._replace(pointer=query.pointer + 16 * head)
    assert library.acme_test_overlap(in_c(query, 2), in_c(key, 2)) == 0
    near = query._replace(pointer=query.pointer + 16 * head - 16)
    assert library.acme_test_overlap(in_c(query, 2), in_c(near, 2)) == 1
