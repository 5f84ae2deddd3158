"""Activations: what is accepted, what it means in C++ and on arrays."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fa4gen.epilogues.activation import LANGUAGE, parse_activation
from fa4gen.expressions import float32
from fa4gen.expressions.tree import evaluate

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
    "where(x > 0, x, 0.1 * x)": lambda x: x if x > 0 else 0.1 * x,
    "exp2(x) + log2(3 + x * x)": lambda x: 2.0**x + math.log2(3 + x * x),
    "min(x, 1, 2 * x)": lambda x: min(x, 1, 2 * x),
}


@pytest.mark.parametrize("text", MEANINGS)
@given(x=st.floats(-20, 20))
def test_on_arrays(text: str, x: float) -> None:
    expression = parse_activation(text)
    [value] = expression.evaluate(np.array([x]), np)
    assert value == pytest.approx(MEANINGS[text](x), rel=1e-12, abs=1e-12)
    [single] = expression.evaluate(np.array([x], np.float32), np)
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("max(x, 0)", "fmaxf(x, 0.f)"),
        ("x*x - 0.5/x", "x * x - __fdividef(0.5f, x)"),
        ("silu(x + 1)", "__fdividef(x + 1.f, 1.f + expf(-(x + 1.f)))"),
        ("-x * 1e-3", "-x * 0.001f"),
        ("x * (1 - x)", "x * (1.f - x)"),
        (" relu( x )\n", "x <= 0.f ? 0.f : x"),
        ("gelu(x)", "0.5f * x * (1.f + erff(x * 0.7071067811865476f))"),
        ("x + (exp(x) - exp(x))", "x + (expf(x) - expf(x))"),  # the order is the config's
        ("x * (x * relu(x))", "x * (x * (x <= 0.f ? 0.f : x))"),
    ],
)
def test_in_cuda(text: str, cuda: str) -> None:
    assert parse_activation(text).cuda() == cuda


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
    try:
        parse_activation(text)
    except ValueError:  # a division by 0 in it
        assume(False)
    code = re.sub(r"(\d+\.\d*|\d+\.?)(e[-+]?\d+)?f", r"\1\2", parse_activation(text).cuda())
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
        ("y + 1", "'y' is not known; there are x, min, max"),
        ("swish(x)", "'swish' is not known; did you mean silu?"),
        ("gelo(x)", "did you mean gelu?"),
        ("max(x)", "max takes 2 arguments or more, got 1"),
        ("erf(x, x)", "erf takes 1 argument, got 2"),
        ("x ** 2", "'x ** 2' is not possible in an activation"),
        ("x if x > 0 else 0", "write where(condition, first, second)"),
        ("__import__('os')", "is not known"),
        ("x.real", "'x.real' is not possible"),
        ("'x'", "is not a number"),
        ("x + True", "is not a number"),
        ("x * 1e40", "not a number that float32 holds"),
        ("x * " + "9" * 150, "not a number that float32 holds"),
        ("x * 1e-60", "not a number that float32 holds"),
        ("relu(" * 25 + "x" + ")" * 25, "is nested too deeply"),
        ("3 + 4", "does not depend on x"),
        ("x > 0", "is a condition, and an activation is a float"),
        ("x + (x > 0)", "is a condition, and a number is needed"),
        ("x" + " + x" * 100, "is too long"),
        ("(" * 190 + "x" + ")" * 9, "is not an expression"),
        ("max(x, y=0)", "is not possible"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_activation(text)


NOT_FINITE = [
    ("x/0", "'0' is 0, and nothing can be divided by it (character 3 of 'x/0')"),
    ("x / -0.0", "(character 5 of"),
    ("x + x/(2 - 2)", "'2 - 2' is 0, and nothing can be divided"),
    ("x / (0 * 3)", "is 0, and nothing can be divided by it"),
    ("1e38*1e38*x", "'1e38*1e38' is inf, which is not a finite number of float32"),
    ("x - (-3e38 - 3e38)", "'-3e38 - 3e38' is -inf"),
    ("x * log(-1)", "'log(-1)' is nan, which is not a finite number"),
    ("x * log(0)", "is -inf"),
    ("x + sqrt(-2)", "is nan, which is not a finite number of float32 (character 5 of"),
    ("x * exp(89)", "'exp(89)' is inf"),
    ("x + 1/exp(100)", "is inf"),
    ("x * (1e-30 * 1e-30)", "is too small for float32, which makes it 0 (character 6 of"),
    ("x / 1e38", "'1e38' is above 2**126, where the GPU's division gives 0"),
    ("x / (x - x)", "gives no finite number for any x that was tried, from -4096 to 4096"),
    ("log(-1 - x*x)", "gives no finite number"),
    ("exp(1000 + abs(x))", "gives no finite number"),
]
TEXTS = [
    ("x # c", "character 3 of 'x # c': # begins a comment, which is not possible"),
    ("x # c\n + 1", "character 3"),
    ("\uff58 + 1", "character 1 of '\uff58 + 1' is U+FF58, which is not an ASCII character"),
    ("ma\uff58(x, 0)", "character 3 of"),
    ("x * \u0663", "is U+0663, which is not an ASCII character"),
    ("x\u00a0+ 1", "character 2 of"),
    ("x\u2028+ 1", "character 2 of"),
    ("x + \x00", "is U+0000"),
    ("x + \ud800", "is U+D800"),
    ("x \\\n + 1", "joins lines"),
    ("x; x", "ends a statement"),
    ("x * 1e400", "'1e400' is not a number that float32 holds (character 5 of"),
    ("x * 1_000", "'1_000' is not a decimal number (character 5 of"),
    ("x * 0x10", "'0x10' is not a decimal number"),
    ("x * 1j", "'1j' is not a number"),
    ("x % 0", "'x % 0' is not possible in an activation: it is made of x, numbers, + - * /, comp"),
    ("x // 2", "is not possible in an activation"),
    ("x[0]", "is not possible in an activation"),
    ("bit(x, 0)", "'bit' is not known"),
    ("1 - x @ x", "'x @ x' is not possible in an activation"),
    ("~x", "is not possible"),
    ("not x", "'x' is a float, and a condition is needed"),
    ("x < 0", "is a condition, and an activation is a float"),
    ("(y := x)", "is not possible"),
    ("f'{x}'", "is not possible"),
    ("lambda: x", "is not possible"),
    ("[x for x in x]", "is not possible"),
    ("max(*x)", "takes 2 arguments or more, got 1"),
    ("max(x, *x)", "is not possible"),
    ("x + None", "'None' is not a number"),
    ("x + ...", "is not a number"),
    ("relu", "relu is a function: write relu(...)"),
    ("x(1)", "'x' is not known"),
    ("-" * 110 + "x", "is too long: at most 100"),
    ("x" + " " * 30 + "y", "is not an expression"),
    ("x" * 401, "is too long: 401 characters, at most 400"),
    ("x + " + "9" * 400, "is too long"),
    ("", "is not an expression"),
]


@pytest.mark.parametrize(("text", "words"), NOT_FINITE + TEXTS)
def test_hostile_expressions_are_refused_with_reason_and_character(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_activation(text)


@pytest.mark.parametrize(
    "text",
    ["--x", "- -+-x", "x/3e-39", "x * 1.401298464324817e-45", "x - 0 * 3", "x / 8.5e37", "00 + x",
     "\tx\n+ 1", "x / (x - 1)", "max(log(x), -1e30)", "1e30 * x * 1e30", ".5*x + 2.",
     "x*(0*1e-30)"],
)  # fmt: skip
def test_what_only_looks_hostile_is_accepted(text: str) -> None:
    parse_activation(text)


@pytest.mark.parametrize("text", MEANINGS)
@given(x=st.floats(-20, 20, width=32))
def test_values_are_those_of_arrays(text: str, x: float) -> None:
    """The check that an activation is finite somewhere computes what the reference does."""
    activation = parse_activation(text)
    [value] = activation.evaluate(np.array([x]), np)
    assert evaluate(activation.tree, {"x": x}, float32) == pytest.approx(value, rel=1e-4, abs=1e-4)


@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        code = parse_activation(text).cuda()
    except ValueError:
        return
    assert code.isascii()


PIECES = (*"x01+-*/(),", "1e38", "1e-38", "0.5", "max", "log", "exp")


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_accepted_pieces_are_finite_somewhere(pieces: list[str]) -> None:
    try:
        expression = parse_activation(" ".join(pieces))
    except ValueError:
        return
    values = expression.evaluate(np.linspace(-4096, 4096, 65537), np)
    assert np.isfinite(values).any()


def test_what_is_nested_a_little_is_written_out() -> None:
    text = parse_activation("gelu(silu(relu(x * 1e-40 - 0.0)))").cuda()
    assert len(re.findall(r"\bx\b", text)) == 8
    assert "1e-40f" in text


def test_every_function_is_named_in_the_refusal() -> None:
    with pytest.raises(ValueError, match="is not known") as refusal:
        parse_activation("zzzzzz(x)")
    assert all(name in str(refusal.value) for name in LANGUAGE.functions)


@pytest.mark.parametrize("text", ["relu(x)", "max(x, -0.5)", "-x", "abs(min(x, 4))", "x"])
def test_choices_round_nothing(text) -> None:
    assert not parse_activation(text).rounds


@pytest.mark.parametrize("text", ["gelu(x)", "max(x, 0.1)", "x * 0.5", "relu(x) + 1", "exp(x)"])
def test_what_is_computed_may_round(text) -> None:
    assert parse_activation(text).rounds
