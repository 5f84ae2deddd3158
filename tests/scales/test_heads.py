"""Tensors of attention in e4m3: scales of heads, and outputs that are the same without means."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.errors import ArgumentError
from fa4gen.scales import add_means, quantize_heads
from fa4gen.verify.cut_sums import CutSums

E4M3 = ml_dtypes.float8_e4m3fn


def drawn(rows: int, heads: int, mean: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(rows + heads)
    return (rng.standard_normal((2, rows, heads, 32)) + mean).astype(np.float32)


def test_heads_of_a_key_head_share_its_scale() -> None:
    x = drawn(50, 6)
    done = quantize_heads(x, key_heads=2)
    for batch in range(2):
        for head in range(2):
            group = x[batch, :, 3 * head : 3 * head + 3]
            scale = np.abs(group).max() / np.float32(448)
            assert done.descales[batch, head] == scale
            wanted = (group / scale).astype(E4M3).view(np.uint8)
            assert (done.elements[batch, :, 3 * head : 3 * head + 3] == wanted).all()


def test_zeros_have_a_scale() -> None:
    done = quantize_heads(np.zeros((1, 3, 1, 32), np.float16))
    assert (done.elements == 0).all()
    assert done.descales[0, 0] > 0
    assert done.means is None


def test_the_output_has_the_means_of_its_values_again() -> None:
    """Two query heads a key head; sums that keep 13 bits lose more of what has a mean of 1."""
    rng = np.random.default_rng(1)
    value = drawn(8192, 1, mean=1.0)[..., :8]
    weights = rng.random((2, 4, 2, 8192))
    weights /= weights.sum(axis=-1, keepdims=True)
    wanted = np.einsum("brhk,bkd->brhd", weights, value[:, :, 0].astype(np.float64))
    errors = []
    for take_means in (False, True):
        done = quantize_heads(value, take_means=take_means)
        numbers = done.elements.view(E4M3).astype(np.float64)[:, :, 0]
        out = np.empty(wanted.shape, np.float32)
        for batch, head in np.ndindex(2, 2):
            rounded = (weights[batch, :, head] * 2.0**18).astype(E4M3).astype(np.float64)
            sums = CutSums().products(rounded, numbers[batch], np) * 2.0**-18
            out[batch, :, head] = sums * done.descales[batch, 0]
        if take_means:
            out = add_means(out, done.means)
        errors.append(np.linalg.norm(out - wanted) / np.linalg.norm(wanted))
    as_is, without = errors
    assert as_is > 0.08
    assert without < 0.002


@pytest.mark.parametrize(
    ("shape", "key_heads"), [((4, 5, 6), None), ((1, 2, 6, 32), 4), ((1, 0, 2, 32), None)]
)
def test_other_axes_are_refused(shape: tuple[int, ...], key_heads: int | None) -> None:
    with pytest.raises(ArgumentError, match=r"x: expected \(batch, rows, heads, depth\)"):
        quantize_heads(np.zeros(shape, np.float32), key_heads=key_heads)
