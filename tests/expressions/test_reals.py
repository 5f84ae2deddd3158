"""Floats in expressions: what is refused, what they may become, how far float32 is off."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.expressions.arrays import RealArrays
from fa4gen.expressions.cuda_text import CudaText, float_text
from fa4gen.expressions.intervals import Interval
from fa4gen.expressions.parse import parse
from fa4gen.expressions.real_intervals import Range, real_intervals
from fa4gen.expressions.rounding_errors import Rounded, RoundingErrors
from fa4gen.expressions.tree import evaluate
from fa4gen.expressions.words import ExpressionError
from fa4gen.scores.expression import language
from tests.expressions.drawn_scores import SCORES, TENSORS
from tests.expressions.places_of import places_of

LANGUAGE = language(TENSORS)
SEEDS = st.integers(0, 1000)


def tree_of(text: str):
    try:
        return parse(text, LANGUAGE)[1]
    except ExpressionError as error:
        assume(
            not re.search("32 bits|may reach|too long|whole number is needed|may be 0", str(error))
        )
        raise


REFUSED = [
    ("score - 0.5 / (query - key)", 16, "'query - key' divides, and may be 0"),
    ("score / 0", 9, "'0' divides, and may be 0"),
    ("score / (score + 1)", 10, "divides, and may be 0"),
    ("exp2(score)", 1, "'exp2(score)' may reach inf, more than"),
    ("score + log2(query - key)", 14, "has a logarithm taken, and may be 0 or below"),
    ("score * 1e300", 9, "'1e300' is not from 7.89e-31 to 1.27e+30"),
    ("score * 1e999", 9, "is not from"),
    ("score + 1e-50", 9, "is not from"),
    ("score * score * score * score", 1, "may reach -3.4e+38, more than"),
    ("score + 1e29 * 1e29", 9, "may reach 1e+58"),
    ("score - slop[head]", 9, "'slop' is not a tensor; there are slope, bias, document"),
    ("score - slope[head, key]", 9, "has 2 indices, and slope is (query_heads)"),
    ("score - slope[score]", 15, "'score' is a float, and a whole number is needed"),
    ("score - slope", 9, "slope is a tensor: write slope[...]"),
    ("score // 2", 1, "'score' is a float, and a whole number is needed"),
    ("score ** 2", 1, "is not possible in a score"),
    ("score if key else 1", 1, "write where(condition, first, second)"),
    ("score.real", 1, "is not possible in a score"),
    ("score + 1j", 9, "'1j' is not a number"),
    ("score + 0x10", 9, "'0x10' is not a decimal number"),
    ("score + 1_0.5", 9, "'1_0.5' is not a decimal number"),
    ("score + nan", 9, "'nan' is not known"),
    ("score + inf", 9, "'inf' is not known"),
    ("where(key < 2, score, key < 3)", 23, "'key < 3' is a condition, and a number is needed"),
    ("score + key * key", 9, "'key * key' may reach 72057594037927936, which 32 bits do not hold"),
    ("max(score)", 1, "max takes 2 arguments or more"),
    ("key < 2", None, "is a condition, and a score is a float"),
    ("(" * 300 + "score" + ")" * 300, None, "too long|is not an expression"),
    ("-" * 200 + "score", None, "too long"),
    ("score +", None, "is not an expression"),
    ("((score", 2, "is not an expression at character 2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "character", "words"), REFUSED)
def test_what_is_refused_says_where(text, character, words) -> None:
    with pytest.raises(ValueError, match="|".join(map(re.escape, words.split("|")))) as caught:
        parse(text, LANGUAGE)
    if character is not None:
        assert caught.value.character == character


@given(text=SCORES, seed=SEEDS)
def test_values_are_within_what_an_expression_may_become(text, seed) -> None:
    places = places_of(seed)
    logits = np.random.default_rng(seed).normal(0, 20, (7, 9))
    tree = tree_of(text)
    values = {**places.indices, "score": logits}
    found = evaluate(tree, values, RealArrays(np, places.tensors)) + 0 * logits
    ranges = {
        name: Interval(int(np.min(one)), int(np.max(one))) for name, one in places.indices.items()
    }
    ranges["score"] = Range(float(logits.min()), float(logits.max()))
    reach = evaluate(
        tree, ranges, real_intervals({"slope": Range(-9.0, 9.0), "bias": Range(-9.0, 9.0)})
    )
    slack = 1e-9 * (1 + abs(reach.low) + abs(reach.high))
    assert reach.low - slack <= found.min()
    assert found.max() <= reach.high + slack


@given(text=SCORES, seed=SEEDS, scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_float32_is_as_far_off_as_said_at_most(text, seed, scale) -> None:
    places = places_of(seed, first_key=seed * 1000)
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, scale, (7, 9)).astype(np.float32)
    error = scale * 2.0**-20
    tree = tree_of(text)
    moved = logits + rng.uniform(-error, error, logits.shape)
    single = RealArrays(np, places.tensors, dtype="float32")
    got = evaluate(tree, {**places.indices, "score": moved.astype(np.float32)}, single)
    assert np.asarray(got).dtype == np.float32
    exact = evaluate(
        tree, {**places.indices, "score": logits.astype(np.float64)}, RealArrays(np, places.tensors)
    )
    rounded = Rounded(logits.astype(np.float64), error + np.abs(logits) * 2.0**-23)
    bound = evaluate(tree, {**places.indices, "score": rounded}, RoundingErrors(np, places.tensors))
    assert np.allclose(bound.value, exact, rtol=1e-12, atol=1e-12)
    assert (np.abs(got - exact) <= bound.error).all()


@given(value=st.floats(2.0**-99, 2.0**99))
def test_a_literal_is_read_back(value) -> None:
    text = float_text(value)
    assert text.endswith("f")
    assert float(text[:-1]) == value
    assert "." in text or "e" in text


def test_the_text_of_each_function() -> None:
    text = "max(tanh(score), -exp2(min(score, 1))) / (1 + abs(score)) - log2(max(score, 1)) * 2"
    found = evaluate(parse(text, LANGUAGE)[1], {"score": CudaText().real(3.0)}, CudaText())
    assert found.text == (
        "__fdividef(fmaxf(tanh_by_exp2(3.f), -exp2_approx(fminf(3.f, 1.f))), 1.f + fabsf(3.f)) - "
        "log2_approx(fmaxf(3.f, 1.f)) * 2.f"
    )
