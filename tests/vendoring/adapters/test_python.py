"""The adapter for Python: what it refuses before the launcher is asked."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tests.vendoring.adapters.folders import FakeArray, import_file

BF16 = ml_dtypes.bfloat16


@pytest.fixture(scope="module")
def acme(folder):
    return import_file(folder / "adapters/python/acme.py")


def fake(*shape, dtype=BF16, device=0):
    return FakeArray(np.zeros(shape, dtype), device)


def attention(**changes):
    shapes = {"query": (2, 10, 4, 128), "key": (2, 12, 2, 128), "value": (2, 12, 2, 128)}
    return {**{name: fake(*shape) for name, shape in shapes.items()}, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"out": fake(2, 10, 2, 128)}, r"out: expected shape \(2, 10, 4, 128\)"),
        ({"out": fake(2, 10, 4, 128, dtype=np.float32)}, "out: expected bfloat16"),
        ({"lse": fake(2, 10, 4, dtype=np.float32)}, r"lse: expected shape \(2, 4, 10\)"),
        ({"softmax_scale": 0}, "softmax_scale: expected a finite number above 0, got 0"),
        ({"softmax_scale": "1"}, "softmax_scale: expected a finite number, got '1'"),
        ({"softmax_scale": float("nan")}, "softmax_scale: expected a finite number above 0"),
        ({"layout": "sbhd"}, 'layout: expected "bshd" or "bhsd"'),
        ({"query": None}, "query: expected an array, got None"),
        ({"query": [1.0]}, "query: expected an array on the GPU .*, got list"),
        ({"value": np.zeros((2, 12, 2, 128), np.float16)}, "value: expected memory of a CUDA"),
        ({"stream": 5}, "out: expected an array, since a stream is given"),
    ],
)
def test_attention_names_what_is_wrong(acme, changes, words) -> None:
    with pytest.raises(ValueError, match=words):
        acme.d128_causal_bf16(**attention(**changes))


def test_arrays_of_two_devices_are_refused(acme) -> None:
    arrays = attention(key=fake(2, 12, 2, 128, device=1))
    arrays |= {"out": fake(2, 10, 4, 128), "lse": fake(2, 4, 10, dtype=np.float32)}
    with pytest.raises(ValueError, match="key: expected device 0, where query lies, got device 1"):
        acme.d128_causal_bf16(**arrays)


def test_columns_have_to_lie_side_by_side(acme) -> None:
    wide = FakeArray(np.zeros((2, 12, 2, 256), BF16)[..., ::2])
    arrays = attention(value=wide, out=fake(2, 10, 4, 128))
    arrays["lse"] = fake(2, 4, 10, dtype=np.float32)
    with pytest.raises(ValueError, match="value: expected a stride of 1 along the last axis"):
        acme.d128_causal_bf16(**arrays)


def test_a_log_sum_exp_is_contiguous(acme) -> None:
    lse = FakeArray(np.zeros((2, 10, 4), np.float32).swapaxes(1, 2))
    with pytest.raises(ValueError, match="lse: expected a contiguous array"):
        acme.d128_causal_bf16(**attention(out=fake(2, 10, 4, 128), lse=lse))


def test_strides_are_whole_elements(acme) -> None:
    query = fake(2, 10, 4, 128)
    odd = np.lib.stride_tricks.as_strided(query.array, strides=(1001, 256, 256, 2))
    with pytest.raises(ValueError, match="query: expected strides that are multiples of 2 bytes"):
        acme.d128_causal_bf16(**attention(query=FakeArray(odd)))


def test_a_batch_is_that_of_a(acme) -> None:
    with pytest.raises(ValueError, match=r"b: expected shape \(32, n\), got \(3, 32, 16\)"):
        acme.gemm_bf16_residual_sm90(fake(8, 32), fake(3, 32, 16), fake(8, 16))
    with pytest.raises(ValueError, match=r"out: expected shape \(8, 16\)"):
        acme.gemm_bf16_residual_sm90(fake(8, 32), fake(32, 16), fake(8, 16), out=fake(8, 24))


def test_the_contiguous_extent_is_that_of_the_kernel(acme) -> None:
    out = fake(8, 16)
    with pytest.raises(ValueError, match="b: expected a stride of 1 along k"):
        acme.gemm_bf16_residual_sm90(fake(8, 32), fake(32, 16), out, out=out)


def test_a_kernel_without_c_takes_none(acme) -> None:
    with pytest.raises(TypeError):
        acme.gemm_fp8_sm90(fake(8, 32), fake(32, 16), fake(8, 16))
    with pytest.raises(ValueError, match=r"c: expected an array .the kernel has residual: row"):
        acme.gemm_bf16_bias_gelu_sm90(fake(8, 32), fake(32, 16), None)


def test_the_library_is_not_built_but_how_is_said(acme, folder, monkeypatch) -> None:
    monkeypatch.delenv("ACME_LIBRARY", raising=False)
    with pytest.raises(OSError, match=r"libacme.so is neither in .*\n  cd .* && cc -O2 -shared"):
        acme._library_path()
    monkeypatch.setenv("ACME_LIBRARY", str(folder / "elsewhere.so"))
    assert acme._library_path() == folder / "elsewhere.so"


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bfloat16", BF16), ("float32", np.float32), ("float8_e4m3fn", np.uint8),
     ("float8_e8m0fnu", np.uint8)],
)  # fmt: skip
def test_new_arrays_have_types_that_cupy_knows(acme, monkeypatch, dtype, expected) -> None:
    """CuPy has no array of fp8: a new quantised output is its bits."""
    cupy = SimpleNamespace(
        ndarray=type(None),
        empty=lambda shape, dtype: np.empty(shape, dtype),
        cuda=SimpleNamespace(Device=lambda device: contextlib.nullcontext()),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    made = acme._empty("out", fake(8, 32), (8, 16), dtype, None)
    assert (made.shape, made.dtype) == ((8, 16), expected)
