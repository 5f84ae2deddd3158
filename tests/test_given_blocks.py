"""Lists of blocks from masks, indices and scores, as a call takes them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen import given_blocks
from fa4gen.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

COMPILER = shutil.which("g++") or shutil.which("clang++")


class OnTheHost:
    """CuPy's module on arrays of NumPy: elementwise kernels are compiled for the host."""

    __name__ = "cupy"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launched: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("arange", "where", "zeros"):
            self.launched.append(name)
        return getattr(np, name)

    def ElementwiseKernel(  # noqa: N802  CuPy's name
        self, inputs: str, outputs: str, operation: str, name: str, *, no_return: bool
    ) -> Any:
        assert (inputs, outputs) == ("T seen, int32 most", "raw int32 offsets, int32 number")
        assert no_return

        def call(seen: Any, most: int, offsets: Any, numbers: Any) -> None:
            assert numbers.flags.c_contiguous
            seen = np.ascontiguousarray(seen)
            self.launched.append(name)
            words = {"bool": "bool", "int8": "signed char", "float32": "float"}[seen.dtype.name]
            source = f"""
            struct Indexer {{ long n; long size() const {{ return n; }} }};
            typedef {words} T;
            extern "C" void run(const T* all, int most, int* offsets, int* numbers, long n) {{
              const Indexer _ind{{n}};
              for (long i = 0; i < n; ++i) {{
                const T& seen = all[i];
                int& number = numbers[i];
                {operation};
              }}
            }}"""
            library = self.folder / f"{seen.dtype.name}.so"
            command = [COMPILER, "-x", "c++", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]
            subprocess.run([*command, library, "-"], input=source, text=True, check=True)
            pointers = (ctypes.c_void_p(one.ctypes.data) for one in (seen, offsets, numbers))
            first, *others = pointers
            ctypes.CDLL(str(library)).run(first, most, *others, ctypes.c_long(seen.size))

        return call


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OnTheHost:
    """Arrays of NumPy count as CuPy's."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    module = OnTheHost(tmp_path)
    monkeypatch.setattr(given_blocks, "_with_module", lambda array: (module, array))
    return module


def sets_of(lists) -> list[set[int]]:
    """Return the blocks that each list names."""
    offsets, indices = lists["block_offsets"], lists["block_indices"]
    assert offsets.dtype == indices.dtype == np.int32
    assert (indices.ndim, offsets[-1]) == (1, indices.size)
    return [
        {int(one) for one in indices[begin:end] if one >= 0} for begin, end in pairwise(offsets)
    ]


def test_a_mask_names_what_is_not_zero() -> None:
    seen = np.random.default_rng(1).random((2, 3, 4, 5)) < 0.4
    expected = [set(map(int, np.flatnonzero(row))) for row in seen.reshape(-1, 5)]
    assert sets_of(given_blocks.from_mask(seen)) == expected
    assert sets_of(given_blocks.from_mask(2 * seen.astype(np.int8))) == expected


def test_indices_are_taken_as_they_are() -> None:
    indices = np.array([[[3, 1, -1], [0, 0, 2]]], np.int64)
    lists = given_blocks.from_indices(indices)
    assert lists["block_offsets"].tolist() == [0, 3, 6]
    assert lists["block_indices"].tolist() == [3, 1, -1, 0, 0, 2]


@pytest.mark.parametrize("most", [1, 3, 7, 9])
def test_the_best_scores_are_named(most) -> None:
    scores = np.random.default_rng(2).permutation(42).reshape(2, 3, 7).astype(np.float32)
    scores[0, 0, 2:] = -np.inf
    found = sets_of(given_blocks.from_scores(scores, most))
    for row, named in zip(scores.reshape(-1, 7), found, strict=True):
        best = sorted(np.flatnonzero(row > -np.inf), key=lambda block, row=row: -row[block])
        assert named == set(map(int, best[:most]))


def test_no_block_is_refused() -> None:
    with pytest.raises(ArgumentError, match="most"):
        given_blocks.from_scores(np.zeros((1, 4)), 0)


def test_more_entries_than_int32_counts_are_refused() -> None:
    indices = np.broadcast_to(np.int32(0), (2**16, 2**15))
    with pytest.raises(ArgumentError, match="2147483648 entries"):
        given_blocks.from_indices(indices)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1), (3, 1, 200)])
def test_a_mask_on_a_gpu_takes_one_launch(cupy, dtype, shape) -> None:
    seen = (3 * (np.random.default_rng(4).random(shape) < 0.4)).astype(dtype)
    lists = given_blocks.from_mask(seen)
    assert cupy.launched == ["fa4gen_list_mask"]
    expected = [set(map(int, np.flatnonzero(row))) for row in seen.reshape(-1, shape[-1])]
    assert sets_of(lists) == expected
    assert lists["block_offsets"].tolist() == list(range(0, seen.size + 1, shape[-1]))


def test_a_mask_on_a_gpu_may_have_any_strides(cupy) -> None:
    seen = np.random.default_rng(5).random((4, 3, 6)) < 0.5
    lists = given_blocks.from_mask(seen.transpose(1, 2, 0))
    expected = given_blocks.from_mask(np.ascontiguousarray(seen.transpose(1, 2, 0)))
    assert lists["block_indices"].tolist() == expected["block_indices"].tolist()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_nothing_is_launched_over_an_empty_mask(cupy, shape) -> None:
    lists = given_blocks.from_mask(np.zeros(shape, bool))
    assert "fa4gen_list_mask" not in cupy.launched
    assert lists["block_offsets"].tolist() == [0] * (shape[0] + 1)
    assert lists["block_indices"].shape == (0,)


def test_indices_on_a_gpu_are_not_copied(cupy) -> None:
    indices = np.array([[3, 1, -1], [0, 0, 2]], np.int32)
    lists = given_blocks.from_indices(indices)
    assert cupy.launched == ["arange"]
    assert np.shares_memory(lists["block_indices"], indices)
    assert lists["block_offsets"].tolist() == [0, 3, 6]


def test_a_mask_with_more_entries_than_int32_counts_is_refused() -> None:
    seen = np.broadcast_to(np.bool_(0), (2**16, 2**15))
    with pytest.raises(ArgumentError, match="seen: expected at most"):
        given_blocks.from_mask(seen)
