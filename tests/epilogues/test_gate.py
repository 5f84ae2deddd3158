"""Gated activations: what is accepted, what it means in C++ and on arrays, where columns are."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.epilogues.activation import GATED_LANGUAGE, parse_activation
from fa4gen.epilogues.gate import halves, names_a_gate
from fa4gen.expressions import float32
from fa4gen.expressions.tree import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


MEANINGS: dict[str, Callable[[float, float], float]] = {
    "silu(gate) * up": lambda gate, up: gate * sigmoid(gate) * up,
    "gelu(gate) * up": lambda gate, up: 0.5 * gate * (1 + math.erf(gate / math.sqrt(2))) * up,
    "relu(gate) * up": lambda gate, up: max(gate, 0) * up,
    "min(gate, 7) * sigmoid(1.702 * min(gate, 7)) * (max(min(up, 7), -7) + 1)": (
        lambda gate, up: min(gate, 7) * sigmoid(1.702 * min(gate, 7)) * (max(min(up, 7), -7) + 1)
    ),
    "sigmoid(gate) * tanh(up)": lambda gate, up: sigmoid(gate) * math.tanh(up),
    "where(gate > up, gate, 0.5 * up)": lambda gate, up: gate if gate > up else 0.5 * up,
}


@pytest.mark.parametrize("text", MEANINGS)
@given(gate=st.floats(-20, 20), up=st.floats(-20, 20))
def test_on_arrays(text: str, gate: float, up: float) -> None:
    expression = parse_activation(text)
    [value] = expression.evaluate_gated(np.array([gate]), np.array([up]), np)
    assert value == pytest.approx(MEANINGS[text](gate, up), rel=1e-12, abs=1e-12)
    values = {"gate": gate, "up": up}
    assert evaluate(expression.tree, values, float32) == pytest.approx(value, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("silu(gate) * up", "gate * sigmoid_by_exp2(gate) * up"),
        ("sigmoid(1.702 * gate)*up", "sigmoid_by_exp2(1.702f * gate) * up"),
        ("relu(gate) * up", "(gate <= 0.f ? 0.f : gate) * up"),
        ("max(min(up, 7), -7) + gate / 2", "fmaxf(fminf(up, 7.f), -7.f) + __fdividef(gate, 2.f)"),
    ],
)
def test_in_cuda(text: str, cuda: str) -> None:
    expression = parse_activation(text)
    assert expression.variables == ("gate", "up")
    assert expression.cuda() == cuda


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("silu(gate)", "'silu(gate)' does not depend on up; write it like 'silu(gate) * up'"),
        ("up + 1", "does not depend on gate"),
        ("silu(gate) * x", "'x' is not known; there are gate, up, min"),
        ("swish(gate) * up", "'swish' is not known; did you mean silu?"),
        ("gate > up", "is a condition, and a gated activation is a float"),
        ("gate * up / (up - up)", "gives no finite number for any gate and up that was tried"),
        ("gate[0] * up", "is not possible in a gated activation"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_activation(text)


def test_names_decide_which_language_it_is() -> None:
    assert names_a_gate("silu(gate) * 2")
    assert not names_a_gate("max(x, 0)")
    assert not names_a_gate("gates + upper")
    assert parse_activation("silu(x)").variables == ("x",)
    assert "sigmoid" in GATED_LANGUAGE.functions


def test_every_function_has_a_meaning_everywhere() -> None:
    for name in (*GATED_LANGUAGE.of_floats, *GATED_LANGUAGE.macros):
        expression = parse_activation(f"{name}(1 + abs(gate)) * up")
        [value] = expression.evaluate_gated(np.array([0.5]), np.array([2.0]), np)
        scalar = evaluate(expression.tree, {"gate": 0.5, "up": 2.0}, float32)
        assert value == pytest.approx(scalar, rel=1e-5)
        assert expression.cuda()


def test_columns_of_both_layouts() -> None:
    columns = np.arange(12).reshape(2, 6)
    gate, up = halves("halves", columns)
    assert (gate.tolist(), up.tolist()) == ([[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]])
    gate, up = halves("interleaved", columns)
    assert (gate.tolist(), up.tolist()) == ([[0, 2, 4], [6, 8, 10]], [[1, 3, 5], [7, 9, 11]])
