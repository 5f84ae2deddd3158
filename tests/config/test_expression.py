"""Activations: what is accepted, what it means in C++ and on arrays."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.expression import FUNCTIONS, parse_expression

if TYPE_CHECKING:
    from collections.abc import Callable

MEANINGS: dict[str, Callable[[float], float]] = {
    "relu(x)": lambda x: max(x, 0.0),
    "max(x, 0.1 * x)": lambda x: max(x, 0.1 * x),
    "gelu(x)": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "silu(x)": lambda x: x / (1 + math.exp(-x)),
    "sigmoid(-x)": lambda x: 1 / (1 + math.exp(x)),
    "min(max(x, 0), 6)": lambda x: min(max(x, 0), 6),
    "x * tanh(log(1 + exp(x)))": lambda x: x * math.tanh(math.log(1 + math.exp(x))),
    "1 - (x - 2) / (3 + abs(x))": lambda x: 1 - (x - 2) / (3 + abs(x)),
    "+sqrt(x * x) - erf(x)": lambda x: abs(x) - math.erf(x),
}


@pytest.mark.parametrize("text", MEANINGS)
@given(x=st.floats(-20, 20))
def test_on_arrays(text: str, x: float) -> None:
    expression = parse_expression(text)
    [value] = expression.evaluate(np.array([x]), np)
    assert value == pytest.approx(MEANINGS[text](x), rel=1e-12, abs=1e-12)
    [single] = expression.evaluate(np.array([x], np.float32), np)
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("max(x, 0)", "fmaxf(x, 0.f)"),
        ("x*x - 0.5/x", "((x * x) - __fdividef(0.5f, x))"),
        ("silu(x + 1)", "__fdividef((x + 1.f), 1.f + expf(-(x + 1.f)))"),
        ("-x * 1e-3", "((-x) * 0.001f)"),
        ("x * (1 - x)", "(x * (1.f - x))"),
        (" relu( x )\n", "(x <= 0.f ? 0.f : x)"),
    ],
)
def test_in_cuda(text: str, cuda: str) -> None:
    assert parse_expression(text).cuda() == cuda


@given(st.data())
def test_cuda_means_what_python_computes(data: st.DataObject) -> None:
    """The C++ of sums, products and quotients, read as Python, gives the same numbers."""
    leaf = st.sampled_from(["x", "2", "0.25", "3.5"])
    tree = st.recursive(
        leaf,
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        max_leaves=8,
    )
    text = "x + " + data.draw(tree)
    code = re.sub(r"(\d+\.\d*|\d+\.?)(e[-+]?\d+)?f", r"\1\2", parse_expression(text).cuda())
    for x in (1.5, 7.25):
        try:
            expected = eval(text, {"x": x})
            value = eval(code, {"x": x, "__fdividef": lambda a, b: a / b})
        except ZeroDivisionError:
            continue
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max(x", "is not an expression at character 4"),
        ("y + 1", "'y' in 'y + 1' is not known"),
        ("gelo(x)", "did you mean gelu?"),
        ("max(x)", "max in 'max(x)' takes 2 arguments, got 1"),
        ("x ** 2", "'x ** 2' is not possible in an activation"),
        ("x if x > 0 else 0", "is not possible in an activation"),
        ("__import__('os')", "is not known"),
        ("x.real", "'x.real' is not possible"),
        ("'x'", "is not a number"),
        ("x + True", "is not a number"),
        ("x * 1e40", "not a number that float32 holds"),
        ("x * " + "9" * 400, "not a number that float32 holds"),
        ("x * 1e-60", "not a number that float32 holds"),
        ("relu(" * 25 + "x" + ")" * 25, "is nested too deeply"),
        ("3 + 4", "does not depend on x"),
        ("x" + " + x" * 60, "is too long"),
        ("(" * 190 + "x" + ")" * 9, "is not an expression"),
        ("max(x, y=0)", "is not possible"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_expression(text)


def test_what_is_nested_a_little_is_written_out() -> None:
    text = parse_expression("gelu(silu(relu(x * 1e-40 - 0.0)))").cuda()
    assert len(re.findall(r"\bx\b", text)) == 8
    assert "1e-40f" in text


def test_every_function_is_named_in_the_refusal() -> None:
    with pytest.raises(ValueError, match="is not known") as refusal:
        parse_expression("zzzzzz(x)")
    assert all(name in str(refusal.value) for name in FUNCTIONS)
