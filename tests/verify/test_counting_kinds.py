"""Data that count: whole logits, whole values, and correct kernels of every type pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fa4gen.verify.attention import make_reference
from fa4gen.verify.cases import Case
from fa4gen.verify.family import family_of
from fa4gen.verify.input_kinds import COUNTING_KINDS, LEAST_RISE, LN2, RAISED
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.reference import AttentionResult
from fa4gen.verify.rounding import round_to
from fa4gen.verify.tolerance import measure

pytestmark = pytest.mark.numbers

KINDS = sorted(COUNTING_KINDS)
PLANS = [
    {},
    {"dtype": "fp16", "mask": "causal"},
    {"arch": "sm_100a", "dtype": "fp8_e4m3"},
    {"arch": "sm_100a", "dtype": "fp8_e4m3", "out_dtype": "fp16", "softcap": 30.0},
    {"softcap": 5.0},
    {"score": "alibi", "depth": 128},
    {"sinks": True, "mask": {"sliding_window": 100}},
]


def draw(kind: str, dtype: str, **keys):
    case = Case("c", 2, 4, 2, 30, 200, data=kind)
    return make_inputs(case, 64, dtype, make_rng(1, "c"), **keys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8_e4m3"])
@pytest.mark.parametrize("values_in_keys", [False, True])
def test_logits_and_values_are_whole(kind, dtype, values_in_keys) -> None:
    more = {"value_depth": 32, "values_in_keys": True} if values_in_keys else {}
    inputs = draw(kind, dtype, descaled=("query", "key", "value"), has_sinks=True, **more)
    assert inputs.counting
    assert inputs.softmax_scale == LN2 == np.float32(np.log(2))
    for array in (inputs.query, inputs.key, inputs.value):
        np.testing.assert_array_equal(array, round_to(array, "fp8_e4m3"))
    whole = inputs.query[..., :-1] if kind == RAISED else inputs.query  # that multiplies zeros here
    for array in (whole, inputs.key, inputs.value):
        np.testing.assert_array_equal(array, np.rint(array))
    assert (inputs.value >= 0).all()
    assert 0.05 < (inputs.value > 0).mean() < 0.2
    for name, scales in inputs.descales.items():
        assert set(np.log2(scales).ravel()) <= {-1, 0, 1}
        assert scales.min() >= 1 or name == "value"
    finite = inputs.sinks[np.isfinite(inputs.sinks)] / LN2
    np.testing.assert_allclose(finite, np.rint(finite), atol=1e-5)


def test_maxima_of_neighbouring_rows_and_heads_part() -> None:
    inputs = draw("counting_rising", "bf16")
    logits = np.einsum("bqhd,bkhd->bhqk", inputs.query, np.repeat(inputs.key, 2, axis=2))
    last, first = (logits[..., part].max(axis=3) for part in (slice(-60, None), slice(60)))
    assert (np.abs(last - first) > 30).all()
    rising = last > first
    assert (rising[:, :, 1:] != rising[:, :, :-1]).mean() > 0.6
    assert (rising[:, 1:] != rising[:, :-1]).mean() > 0.6


@pytest.mark.parametrize("values_in_keys", [False, True])
def test_raised_keys_have_weights_of_their_own(values_in_keys) -> None:
    """Both groups are whole by themselves, and half of the columns are of the others alone."""
    more = {"value_depth": 32, "values_in_keys": True} if values_in_keys else {}
    case = Case("c", 2, 4, 2, 30, 200, data=RAISED, raised=(64, 128))
    inputs = make_inputs(case, 64, "fp8_e4m3", make_rng(1, "c"), **more)
    assert inputs.raised == (64, 128)
    logits = np.einsum("bqhd,bkhd->bhqk", inputs.query, np.repeat(inputs.key, 2, axis=2))
    raised = np.zeros(200, bool)
    raised[64:128] = True
    above, others = logits[..., raised], logits[..., ~raised]
    np.testing.assert_array_equal(others, np.rint(others))
    np.testing.assert_array_equal(above - 11.375, np.rint(above - 11.375))
    rise = above.max(axis=3) - others.max(axis=3)
    assert rise.min() >= LEAST_RISE > 8
    half = inputs.value.shape[3] // 2
    assert not inputs.value[:, raised, :, half:].any()
    assert inputs.value[:, raised, :, :half].any()
    assert inputs.value[:, ~raised, :, half:].any()
    if values_in_keys:
        np.testing.assert_array_equal(inputs.key[..., :32], inputs.value)


@pytest.mark.parametrize("threshold", [0.0, 8.0])
@pytest.mark.parametrize("rounds", [False, True])
def test_a_factor_of_older_sums_that_is_rounded_shows(make_plan, threshold, rounds) -> None:
    """Two blocks of keys, the second of which is raised: the sums of the first have a factor."""
    plan = replace(make_plan(lse=False), rescale_threshold=threshold)
    case = Case("c", 1, 2, 2, 40, 200, data=RAISED, raised=(0, 64))
    inputs = make_inputs(case, 64, "bf16", make_rng(1, "c"))
    reference = make_reference(plan, inputs, make_rng(1, "c"), np)
    single = (reference.exact.low == reference.exact.high).mean()
    assert single > 0.95, "but for numbers near the middle of two of the type"
    sums, total, maximum = np.float32(0), np.float32(0), None
    logits = np.einsum("bqhd,bkhd->bhqk", inputs.query, inputs.key).astype(np.float32)
    for keys in (slice(64, 200), slice(0, 64)):
        largest = logits[..., keys].max(axis=3, keepdims=True)
        factor = np.float32(0) if maximum is None else np.exp2(maximum - largest)
        factor = round_to(factor * np.ones_like(largest), "bf16") if rounds else factor
        weights = round_to(np.exp2(logits[..., keys] - largest), "bf16")
        sums = sums * factor + np.einsum("bhqk,bkhd->bhqd", weights, inputs.value[:, keys])
        total = total * factor + weights.sum(axis=3, keepdims=True)
        maximum = largest
    got = AttentionResult(round_to((sums / total).swapaxes(1, 2), "bf16"), None)
    share = measure(got, reference.exact).share
    assert (share > 1) is rounds


@pytest.mark.parametrize("keys", PLANS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_right_kernel_is_within_one_rounding(make_plan, numpy_backend, keys, kind) -> None:
    plan = make_plan(**keys)
    problem = family_of(plan).draw(Case("c", 2, 4, 2, 150, 300, data=kind), 1)
    reference = problem.reference(np)
    assert reference.own.share <= 1
    room = (reference.exact.high - reference.exact.low).max() / reference.exact.out.max()
    if not keys.keys() & {"softcap", "score"}:
        single = (reference.exact.low == reference.exact.high).mean()
        assert single > 0.85, "but for numbers near the middle of two of the type"
        assert room < 2.0**-7
    if keys.keys() & {"sinks", "score"}:  # the NumPy kernel has neither
        return
    after = numpy_backend().load(plan, None).run(problem.memory)
    assert reference.compare(problem.memory, after, np)[1] == ()


def test_other_data_have_no_intervals(make_plan) -> None:
    plan = make_plan()
    problem = family_of(plan).draw(Case("c", 1, 1, 1, 20, 30), 1)
    reference = problem.reference(np)
    assert reference.exact.low is None
    assert reference.own.share == 0


def test_an_element_outside_is_named(make_plan, numpy_backend) -> None:
    plan = make_plan()
    problem = family_of(plan).draw(Case("c", 1, 1, 1, 20, 30, data="counting"), 1)
    reference = problem.reference(np)
    ends = {name: getattr(reference.exact, name).copy() for name in ("out", "low", "high")}
    for array in ends.values():
        array[0, 3, 0, 5] *= 1.25
    wrong = replace(reference, exact=replace(reference.exact, **ends))
    after = numpy_backend().load(plan, None).run(problem.memory)
    _, failures = wrong.compare(problem.memory, after, np)
    assert any("out[batch 0, row 3, head 0, column 5]" in one.message for one in failures)
    assert any("% off" in one.message for one in failures)


def test_a_zero_must_be_exact(make_plan) -> None:
    """A column that no key adds to is 0, and an element of it that is not is refused."""
    plan = make_plan()
    inputs = draw("counting", "bf16")
    value = inputs.value.copy()
    value[..., 7] = 0
    reference = make_reference(plan, replace(inputs, value=value), make_rng(1, "c"), np)
    assert (reference.exact.low[..., 7] == 0).all()
    assert (reference.exact.high[..., 7] == 0).all()


@pytest.mark.parametrize(("dtype", "keys"), [("bf16", 64), ("bf16", 300), ("fp16", 1000)])
def test_a_single_key_of_a_single_row_shows(dtype, keys) -> None:
    """By the output alone: hidden, without its value, with its neighbour's, or there twice."""
    case = Case("c", 1, 1, 1, 12, keys, data="counting")
    inputs = make_inputs(case, 64, dtype, make_rng(1, "c"))
    query, key, value = (
        x[0, :, 0].astype(np.float64) for x in (inputs.query, inputs.key, inputs.value)
    )
    weights = np.exp2(query @ key.T)
    sums, totals = weights @ value, weights.sum(axis=1, keepdims=True)

    def rounded(of_sums, of_totals):
        return round_to((of_sums / of_totals).astype(np.float32), dtype)

    right, shown = rounded(sums, totals), []
    for j in range(keys - 1):
        weight = weights[:, j, None]
        moved = weight * value[j]
        wrong = (
            rounded(sums - moved, totals - weight),
            rounded(sums - moved, totals),
            rounded(sums - moved + weight * value[j + 1], totals),
            rounded(sums + moved, totals + weight),
        )
        shown += [(one != right).any(axis=1).mean() for one in wrong]
    assert np.mean(shown) > 0.999, "all but a light key in a thousand"
