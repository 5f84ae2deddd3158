from __future__ import annotations

import numpy as np
import pytest

from fa4gen.config.find import find_configs
from fa4gen.masks import NoMask
from fa4gen.scores import Score
from fa4gen.verify.cases import Case
from fa4gen.verify.input_kinds import KINDS, kind_meaning
from fa4gen.verify.inputs import draw_tensor, make_inputs, make_rng
from fa4gen.verify.reference import AttentionProblem, exact_attention
from fa4gen.verify.rounding import LARGEST, round_to
from tests.shipped import plan_of


def inputs_of(kind: str, dtype: str = "bf16", depth: int = 64, seed: int = 1, **sizes):
    case = Case("c", 1, 2, 1, sizes.get("rows", 50), sizes.get("keys", 600), data=kind)
    return make_inputs(case, depth, dtype, make_rng(seed, case.name))


def logits_of(inputs):
    q, k = inputs.query[0, :, 0].astype(np.float64), inputs.key[0, :, 0].astype(np.float64)
    return inputs.softmax_scale * (q @ k.T)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8_e4m3"])
@pytest.mark.parametrize("depth", [64, 256])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_held_by_the_type_and_by_float32(kind, dtype, depth) -> None:
    inputs = inputs_of(kind, dtype, depth)
    for array in (inputs.query, inputs.key, inputs.value):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(array, round_to(array, dtype))
    assert 2.0**-126 <= inputs.softmax_scale <= 2.0**126, "the launcher takes no other"
    result = exact_attention(
        AttentionProblem(NoMask(), Score(), inputs.softmax_scale),
        inputs.query,
        inputs.key,
        inputs.value,
    )
    assert np.abs(result.out).max() <= LARGEST[dtype]
    # What the kernel holds before it divides: probabilities up to 2^10, if the maximum lags.
    sums = 2.0**10 * np.abs(inputs.value.astype(np.float64)).sum(axis=1)
    assert sums.max() < np.finfo(np.float32).max


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_works_on_empty_tensors_and_says_what_it_is(kind) -> None:
    assert inputs_of(kind, keys=0).key.shape == (1, 0, 1, 64)
    assert inputs_of(kind, rows=0).query.shape == (1, 0, 2, 64)
    assert kind_meaning(kind).endswith((".", ",", ":")) or kind_meaning(kind)


def test_ramps_go_the_way_they_say() -> None:
    rising = logits_of(inputs_of("rising")).mean(axis=0)
    falling = logits_of(inputs_of("falling")).mean(axis=0)
    assert rising[-50:].mean() - rising[:50].mean() > 60
    assert falling[:50].mean() - falling[-50:].mean() > 60
    both = logits_of(inputs_of("rising_and_falling"))
    slope = both[:, -50:].mean(axis=1) - both[:, :50].mean(axis=1)
    assert (slope[::3] > 60).all()
    assert (slope[1::3] < -60).all()


@pytest.mark.parametrize(("kind", "position"), [("dominant_first", 0), ("dominant_last", -1)])
def test_a_dominant_key_dominates(kind, position) -> None:
    logits = logits_of(inputs_of(kind))
    others = np.delete(logits, position % logits.shape[1], axis=1)
    assert (logits[:, position] > others.max(axis=1) + 50).all()


def test_offsets_are_common_to_all_logits() -> None:
    assert logits_of(inputs_of("all_logits_high")).min() > 150
    assert logits_of(inputs_of("all_logits_low")).max() < -150


@pytest.mark.parametrize(("dtype", "least"), [("bf16", 100), ("fp16", 100), ("fp8_e4m3", 5)])
def test_rounding_high_peaks_to_16_bits_moves_them_far(dtype, least) -> None:
    """In powers of two, for most rows, and as much as their distance from the other keys."""
    logits = logits_of(inputs_of("high_peaks", dtype, depth=128)) * np.log2(np.e)
    peaks = logits.max(axis=1)
    moved = np.abs(round_to(peaks.astype(np.float32), "bf16") - peaks)
    assert (moved > least).mean() > 0.7
    others = np.where(logits < peaks[:, None], logits, -np.inf).max(axis=1)
    assert (peaks > others + 200).all()


@pytest.mark.parametrize(
    ("dtype", "depth", "power"),
    [("bf16", 64, 31), ("bf16", 576, 31), ("fp16", 128, 28), ("fp8_e4m3", 128, 18)],
)
def test_equal_logits_are_near_a_power_of_two(dtype, depth, power) -> None:
    """Rounded to bf16 they would be off by more than exponentials have room for."""
    inputs = inputs_of("equal_high", dtype, depth=depth)
    exponents = logits_of(inputs) * np.log2(np.e)
    assert (exponents == exponents[:, :1]).all()
    assert 2.0 ** (power - 2) < np.abs(exponents).max() < 2.0**power
    assert len(np.unique(exponents)) > 10
    moved = np.abs(round_to(exponents[:, 0].astype(np.float32), "bf16") - exponents[:, 0])
    assert (moved > 50).mean() > 0.7
    assert inputs.scale_is_default


def test_extremes_are_extreme() -> None:
    assert not inputs_of("huge").scale_is_default
    assert np.abs(inputs_of("huge", "fp16").value).max() > 0.95 * 65504
    assert np.abs(inputs_of("huge", "bf16").value).max() > 2.0**100
    assert np.abs(inputs_of("huge", "fp8_e4m3").value).max() == 448
    tiny = np.abs(inputs_of("tiny", "fp8_e4m3").value)
    assert np.median(tiny[tiny > 0]) < 2.0**-6, "subnormals"
    tiny = np.abs(inputs_of("tiny", "fp16").value)
    assert 0 < tiny[tiny > 0].min() < 2.0**-14, "subnormals"
    assert np.abs(inputs_of("tiny", "bf16").value).max() < 2.0**-80


@pytest.mark.parametrize("kind", ["rising", "falling", "all_logits_high", "all_logits_low"])
def test_logits_of_fp8_are_as_large_as_those_of_16_bits(kind) -> None:
    wide, narrow = (
        np.abs(logits_of(inputs_of(kind, dtype, 256))) for dtype in ("bf16", "fp8_e4m3")
    )
    assert narrow.max() > 0.9 * wide.max()


def test_values_have_a_depth_of_their_own() -> None:
    case = Case("c", 2, 4, 2, 5, 7)
    inputs = make_inputs(case, 192, "bf16", make_rng(1, "c"), value_depth=128)
    assert inputs.key.shape == (2, 7, 2, 192)
    assert inputs.value.shape == (2, 7, 2, 128)
    assert not inputs.descales


def test_scales_are_those_that_the_case_names() -> None:
    case = Case("c", 3, 4, 2, 5, 7)
    every = ("query", "key", "value")
    inputs = make_inputs(case, 64, "fp8_e4m3", make_rng(1, "c"), descaled=every)
    assert set(inputs.descales) == {"query", "key", "value"}
    for scale in inputs.descales.values():
        assert (scale.shape, scale.dtype) == ((3, 2), np.float32)
        assert 0.5 <= scale.min() < scale.max() <= 2
    for names in ((), ("key",)):
        case = Case("c", 3, 4, 2, 5, 7, descales=names)
        found = make_inputs(case, 64, "fp8_e4m3", make_rng(1, "c"), descaled=every)
        assert tuple(found.descales) == names
        np.testing.assert_array_equal(found.query, inputs.query)
    assert not make_inputs(case, 64, "fp8_e4m3", make_rng(1, "c")).descales


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_values_have_a_type_of_their_own(kind, dtype) -> None:
    case = Case("c", 1, 2, 1, 9, 600, data=kind)
    more = {"kv_dtype": "fp8_e4m3", "descaled": ("key", "value")}
    inputs = make_inputs(case, 64, dtype, make_rng(1, "c"), **more)
    assert tuple(inputs.descales) == ("key", "value")
    for array in (inputs.key, inputs.value):
        np.testing.assert_array_equal(round_to(array, "fp8_e4m3"), array)
    wide = make_inputs(case, 64, dtype, make_rng(1, "c"))
    own, like = logits_of(inputs), logits_of(wide)
    assert np.isfinite(own).all()
    if kind not in ("far_apart", "uniform", "equal_high"):  # the last has a size for each type
        assert 0.5 < np.abs(own).max() / np.abs(like).max() < 2, "the kind is what it was"


# ---- declared tensors at edges


def drawn(config: str, case: Case):
    """Return the first declared tensor of a shipped config."""
    (tensor,) = plan_of(find_configs([config])[0]).declared_tensors
    return draw_tensor(tensor, case, make_rng(1, case.name))


def test_wild_documents_are_in_no_order_and_differ_by_batch() -> None:
    found = drawn("d128_documents_bf16", Case("x", 2, 1, 1, 300, 400, tensors="wild"))
    assert found.shape == (2, 400)
    for row in found:
        assert 2 < len(set(row.tolist())) < 10
        assert (np.diff(row.astype(np.int64)) < 0).any()
        assert (np.diff(row.astype(np.int64)) > 0).any()
    assert not set(found[0].tolist()) & set(found[1].tolist())


def test_wild_slopes_are_large_tiny_zero_and_of_both_signs() -> None:
    found = drawn("d128_alibi_causal_bf16", Case("x", 1, 6, 6, 70, 400, tensors="wild"))
    assert found.min() < -1 < 0 < 1 <= found.max()
    assert 0 in found
    assert (np.abs(found[found != 0]) < 2.0**-9).any()


def test_wild_bits_are_everywhere() -> None:
    found = drawn("decode_d128_tree_paged64_bf16", Case("x", 2, 6, 6, 3, 400, tensors="wild"))
    seen = np.bitwise_or.reduce(found.view(np.uint32), axis=None)
    assert int(seen).bit_count() > 24
    assert (found < 0).any()


def test_runs_are_whole_blocks_and_whole_parts() -> None:
    case = Case("x", 2, 1, 1, 256, 640, tensors="runs")
    found = drawn("d128_documents_listed_bf16", case)
    assert [int((row == 1).sum()) for row in found] == [320, 320]
    assert set(found[0, 96:192]) == {1}
    assert set(found[0, 192:288]) == {5}
    np.testing.assert_array_equal(found[1], 6 - found[0])
