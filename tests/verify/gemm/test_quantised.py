"""Quantised outputs in verify: what a result in its interval becomes is right, nothing else is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fa4gen.designs.common.gemm_scales import OUTPUT_FORMS
from fa4gen.scales import arrange, quantize
from fa4gen.verify.errors import element_shares
from fa4gen.verify.gemm.groups import Groups
from fa4gen.verify.gemm.quantised import (
    Quantising,
    check_scales,
    dequantised,
    plain_scales,
    quantised_own,
)
from fa4gen.verify.gemm.tolerance import GemmResult
from fa4gen.verify.rounding import narrow_values

COUNTS = (130, 0, 1, 128)
FORMS = [("1x128", "fp32"), ("1x128", "ue8m0"), ("mxfp8", "ue8m0"), ("nvfp4", "ue4m3")]
TENSOR_SCALE = 300.0
MEMORY: Any = SimpleNamespace(
    views={"out_scales": SimpleNamespace(shape=(2, 5, 3))},
    place_of=lambda name, index: f"{name}{list(index)}",
)


def described(form: str, dtype: str) -> Any:
    scales = replace(OUTPUT_FORMS[form], dtype=dtype)
    return Quantising(scales, np.float32(TENSOR_SCALE if scales.has_tensor_scale else 1))


def numbers(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 5, 300)).astype(np.float32)
    x *= np.exp2(rng.integers(-20, 20, (2, 5, 1))).astype(np.float32)
    x[0, 0] = 0
    x[0, 1, 7], x[1, 2, 130], x[1, 3, 4] = np.nan, np.inf, -np.inf
    x[1, 4, :128] = np.nan
    return x


def result_of(x: Any, share: float = 0.0) -> GemmResult:
    """A result whose elements may be off by a share of their size."""
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        off = np.where(np.isfinite(x), np.abs(wide) * share, 0.0)
        low, high = (wide - off).astype(np.float32), (wide + off).astype(np.float32)
    return GemmResult(wide, low, high, off, x)


def is_right(got: Any, bits: Any, result: GemmResult, scales: Any) -> bool:
    wrong = check_scales(MEMORY, result, bits, scales)
    numbers = narrow_values(got, scales.scales.element)
    elements, rounded = dequantised(numbers, result, bits, scales)
    with np.errstate(invalid="ignore", over="ignore"):
        return not wrong and bool((element_shares(elements, rounded) <= 1).all())


def parts(x: Any, form: str, dtype: str) -> tuple[Any, Any]:
    with np.errstate(invalid="ignore"):
        scale = dtype if form == "1x128" else None
        of_tensor = TENSOR_SCALE if form == "nvfp4" else None
        found = quantize(x, form, scale=scale, tensor_scale=of_tensor)
    bits = found.scales.view(np.uint32) if dtype == "fp32" else found.scales
    return found.elements.copy(), bits.copy()


@pytest.mark.parametrize(("form", "dtype"), FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_what_quantize_makes_is_right_and_its_neighbours_are_not(
    form: str, dtype: str, seed: int
) -> None:
    x, scales = numbers(seed), described(form, dtype)
    result = result_of(x)
    got, bits = parts(x, form, dtype)
    assert is_right(got, bits, result, scales)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        place = tuple(int(rng.integers(0, extent)) for extent in bits.shape)
        wrong = bits.copy()
        wrong[place] += rng.choice((-1, 1))
        assert not is_right(got, wrong, result, scales), place
        place = tuple(int(rng.integers(0, extent)) for extent in got.shape)
        changed = got.copy()
        changed[place] ^= 1
        if form == "nvfp4":
            told = bits[(*place[:2], place[2] * 2 // 16)] != 0x7F  # a number, not one of many NaN
        else:
            told = got[place] & 0x7F not in (0x7E, 0x7F)  # not between the largest and NaN
        if told:
            assert not is_right(changed, bits, result, scales), place


@pytest.mark.parametrize(("form", "dtype"), FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_lies_in_the_interval_is_right(form: str, dtype: str, seed: int) -> None:
    x, scales = numbers(seed), described(form, dtype)
    result = result_of(x, 2.0**-12)
    rng = np.random.default_rng(seed)
    with np.errstate(invalid="ignore"):
        drawn = result.low + rng.random(x.shape).astype(np.float32) * (result.high - result.low)
        drawn = np.where(np.isfinite(x), np.clip(drawn, result.low, result.high), x)
    assert is_right(*parts(drawn, form, dtype), result, scales)
    got, bits = parts(np.float32(3) * drawn, form, dtype)
    assert not is_right(got, bits, result, scales)
    own = quantised_own(result, scales).own
    assert np.isnan(own[0, 1, 7])
    assert (own[0, 0] == 0).all()


def test_a_scale_of_no_amax_is_wrong_even_within_the_interval() -> None:
    """448 is 1.75 * 256: most numbers of float32 are the quotient of some amax, not all."""
    scales = described("1x128", "fp32")
    x = np.ones((1, 1, 128), np.float32)
    result = result_of(x, 2.0**-8)
    steps = np.arange(-2000, 2000)
    quotients = (np.float32(1 / 448).view(np.int32) + steps).astype(np.int32).view(np.uint32)
    amax = (np.float32(1).view(np.int32) + np.arange(-9000, 9000)).astype(np.int32)
    known = set((amax.view(np.float32) / np.float32(448)).view(np.uint32).tolist())
    memory: Any = SimpleNamespace(**{**vars(MEMORY), "views": {
        "out_scales": SimpleNamespace(shape=(1, 1, 1))}})  # fmt: skip
    for bits in quotients[::7]:
        found = check_scales(memory, result, np.full((1, 1, 1), bits), scales)
        assert bool(found) == (int(bits) not in known)


def of_atoms(atoms: Any, out: tuple[int, ...], groups: Groups | None = None) -> tuple[Any, Any]:
    """Return the memory of an output with scales in atoms, and its buffers."""
    views = {
        "out": SimpleNamespace(shape=out),
        "out_scales": SimpleNamespace(bits=lambda buffer: buffer, buffer="out_scales"),
    }
    return SimpleNamespace(views=views, groups=groups), {"out_scales": atoms}


@pytest.mark.parametrize("kind", ["offsets", "masked"])
def test_atoms_of_groups_hold_the_rows_of_one_each(kind: str) -> None:
    scales, groups = replace(OUTPUT_FORMS["mxfp8"], in_atoms=True), Groups(kind, COUNTS, (3, 5))
    plain = np.random.default_rng(1).integers(1, 255, (groups.matrices, groups.rows, 9))
    none = groups.rows_of_none()
    plain[none] = 0
    atoms = arrange(groups.in_atoms(plain.astype(np.uint8), 0))
    memory, after = of_atoms(atoms, (*none.shape, 288), groups)
    found, wrong = plain_scales(memory, after, scales)
    assert np.array_equal(found[0], plain[~none])
    assert not wrong
    there = ~groups.atoms_of_none()
    assert there.sum() == sum(-(-count // 128) for count in COUNTS)
    atoms[groups.atoms_of_none()] = 7  # what no group has is not looked at here
    assert not plain_scales(memory, after, scales)[1]
    atoms[tuple(np.argwhere(there)[1])][0, 31, 3, 3] = 1  # past the rows of the first group
    assert len(plain_scales(memory, after, scales)[1]) == 1


def test_padding_of_atoms_has_to_be_zero() -> None:
    scales = replace(OUTPUT_FORMS["mxfp8"], in_atoms=True)
    plain = np.random.default_rng(1).integers(1, 255, (2, 130, 9)).astype(np.uint8)
    atoms = arrange(plain)
    memory, after = of_atoms(atoms, (2, 130, 288))
    found, wrong = plain_scales(memory, after, scales)
    assert np.array_equal(found, plain)
    assert not wrong
    atoms[1, 1, 2, 31, 3, 3] = 1
    _, wrong = plain_scales(memory, after, scales)
    assert [failure.message for failure in wrong] == [
        "1 scales past the end of the rows or of the blocks are not 0"
    ]
