"""The score functions' Python against their definition, and what a config asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fa4gen.scores
from fa4gen.scores import SCORES, Score, Softcap, score_numbers, score_of

DEFINED = {"softcap": lambda score, x: score.softcap * math.tanh(x / score.softcap)}
"""Each function of one logit."""


def drawn() -> st.SearchStrategy[Score]:
    numbers = st.floats(0.5, 100)
    kinds = [st.builds(kind, *(numbers for _ in kind.number_notes())) for kind in SCORES]
    return st.one_of(st.just(Score()), *kinds)


def test_every_function_has_a_definition() -> None:
    assert set(DEFINED) == {kind.name for kind in SCORES}


@given(score=drawn(), logits=st.lists(st.floats(-200, 200), min_size=1, max_size=9))
def test_the_exact_function_is_the_defined_one(score, logits) -> None:
    expected = [DEFINED[score.name](score, x) if score.FUNCTION else x for x in logits]
    np.testing.assert_allclose(score.exact(np.array(logits), np), expected, rtol=1e-12)


@given(
    score=drawn(),
    products=st.lists(st.floats(-500, 500, width=32), min_size=1, max_size=9),
    scale=st.floats(0.01, 1),
)
def test_the_rounded_function_is_the_exact_one_within_its_error(score, products, scale) -> None:
    products = np.array(products, dtype=np.float32)
    found, unit = score.rounded(products, scale, np)
    exact = score.exact(products.astype(np.float64) * scale, np)
    # of the float32 product with the unit, which may be the smallest subnormal number
    rounding = max(2.0**-23 * np.abs(exact).max(), 2.0**-149)
    assert np.abs(found * unit - exact).max() <= score.error + rounding


def test_a_config_asks_for_one_function(monkeypatch) -> None:
    assert score_of({"softcap": None}) == Score()
    assert score_of({"softcap": 30.0, "mask": "none"}) == Softcap(30.0)

    @dataclass(frozen=True)
    class Other(Score):
        name: str = field(default="other", init=False)
        other: float = field(metadata={"note": ""})

    monkeypatch.setattr(fa4gen.scores, "SCORES", (Softcap, Other))
    assert list(score_numbers()) == ["softcap", "other"]
    assert score_of({"softcap": None, "other": 2.0}) == Other(2.0)
    with pytest.raises(ValueError, match="softcap and other are functions of the same logits"):
        score_of({"softcap": 1.0, "other": 2.0})


@pytest.mark.parametrize("kind", SCORES)
def test_the_cuda_of_an_entry_names_what_it_reads(kind) -> None:
    score = kind(*(3.0 for _ in kind.number_notes()))
    assert any(score.FACTOR in line for line in score.body("s[i]"))
    assert "a * b" in score.factor("a * b")
    assert any("s[i] = " in line for line in score.body("s[i]"))
    assert all(str(value) in score.words for value in score.numbers().values())
