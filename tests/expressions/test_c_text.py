"""Expressions as C, built by the host's compiler, against Python at every index."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess

import numpy as np
import pytest

from fa4gen.expressions import c_text, exact
from fa4gen.expressions.c_text import C, Rank, number
from fa4gen.expressions.intervals import Interval, Intervals
from fa4gen.expressions.parse import parse_condition
from fa4gen.expressions.tree import evaluate
from fa4gen.masks.expression import LANGUAGE
from tests.expressions.drawn import meaning

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HELPERS = """
#include <stdbool.h>
#include <stdlib.h>
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static int floor_divide(int a, int b) { return a / b - (a % b < 0); }
static int floor_remainder(int a, int b) { return a % b + (a % b < 0 ? b : 0); }
"""
FIXED = [
    "key <= query",
    "query - key < 5 and key % 3 != 1",
    "not (query < key) or key // 2 * 2 == query - 1",
    "where(query - 3 < 2, key, -key) + 1 > abs(query) - 7",
    "min(query, key, 3) * 2 - (query - (key - 1)) < max(key, 4) - 3 - 2",
    "query % 4 // 2 == key % 4 // 2",
    "0 <= query - key < 7",
    "bit(query * 5 - 9, key - query) == bit(key, 1 + bit(query, 0))",
    "bit(-1 - key, query) + 1 > 1",
]


def number_text(rng: random.Random, depth: int) -> str:
    """A number of random parts."""
    if depth == 0:
        return rng.choice(["query", "key", str(rng.randrange(9))])
    left, right = number_text(rng, depth - 1), number_text(rng, rng.randrange(depth))
    return rng.choice(
        [f"{left} + ({right})", f"{left} - ({right})", f"{rng.randrange(4)} * ({left})",
         f"({left}) // {rng.randrange(1, 7)}", f"({left}) % {rng.randrange(1, 7)}",
         f"min({left}, {right})", f"max({left}, {right})", f"abs({left})", f"-({left})",
         f"where({left} < {right}, {right}, {left})", f"bit({left}, {right})"]
    )  # fmt: skip


def condition_text(rng: random.Random, depth: int) -> str:
    """A condition of random parts."""
    if depth == 0:
        sign = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"{number_text(rng, rng.randrange(4))} {sign} {number_text(rng, rng.randrange(3))}"
    left, right = condition_text(rng, depth - 1), condition_text(rng, rng.randrange(depth))
    return rng.choice([f"{left} and {right}", f"({left} or {right})", f"not ({left})"])


def drawn_texts(count: int) -> list[str]:
    """Conditions that parse: some by hand, some drawn, the same in every run."""
    texts, rng = list(FIXED), random.Random(5)
    while len(texts) < count:
        text = condition_text(rng, rng.randrange(4))
        try:
            parse_condition(text, LANGUAGE)
        except ValueError:  # it never holds, or it may leave 32 bits
            continue
        texts.append(text)
    return texts


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    texts = drawn_texts(120)
    functions = [HELPERS]
    query, key = C("q", Rank.ATOM), C("k", least=0)
    ends = {
        "query": Interval(C("q"), C("q2")),
        "key": Interval(C("k", least=0), C("k2", least=0)),
    }
    for i, text in enumerate(texts):
        tree = parse_condition(text, LANGUAGE)[1]
        point = evaluate(tree, {"query": query, "key": key}, c_text).text
        all_of = evaluate(tree, ends, Intervals(c_text)).certain.text
        functions.append(f"int sees{i}(int q, int k) {{ return {point}; }}")
        functions.append(f"int all{i}(int q, int q2, int k, int k2) {{ return {all_of}; }}")
    source = folder / "c.c"
    source.write_text("\n".join(functions))
    command = [COMPILER, "-std=c99", "-Wall", "-Wno-unused", "-Wno-tautological-compare",
               "-fPIC", "-shared", "-o", str(folder / "c.so"), str(source)]  # fmt: skip
    subprocess.run(command, check=True)
    return texts, ctypes.CDLL(str(folder / "c.so"))


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_c_gives_what_python_gives(library) -> None:
    texts, built = library
    for i, text in enumerate(texts):
        sees, wanted = getattr(built, f"sees{i}"), meaning(text)
        for query in range(-7, 12):
            for key in range(12):
                assert bool(sees(query, key)) == bool(wanted(query, key)), (text, query, key)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_c_of_rectangles_gives_what_python_gives(library) -> None:
    texts, built = library
    rng = np.random.default_rng(3)
    for i, text in enumerate(texts):
        tree = parse_condition(text, LANGUAGE)[1]
        for query, rows, key, keys in rng.integers([-9, 0, 0, 0], [12, 6, 12, 6], (60, 4)).tolist():
            rectangle = {
                "query": Interval(query, query + rows),
                "key": Interval(key, key + keys),
            }
            wanted = evaluate(tree, rectangle, Intervals(exact)).certain
            found = getattr(built, f"all{i}")(query, query + rows, key, key + keys)
            assert bool(found) == wanted, (text, query, rows, key, keys)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("key <= query", "k <= q"),
        ("query - (key + 1) < 128", "q - (k + 1) < 128"),
        ("key // 64 == query // 64", "k / 64 == floor_divide(q, 64)"),
        ("key % 4 == 0 and (key < 2 or query > 3)", "k % 4 == 0 && (k < 2 || q > 3)"),
        ("key < 2 or query > 3 and key > 1", "k < 2 || (q > 3 && k > 1)"),
        ("not key < 3", "!(k < 3)"),
        ("query + 0 > key + (2 - 5)", "q > k - 3"),
        ("2 * (query - 1) >= 1 * key", "2 * (q - 1) >= k"),
    ],
)
def test_the_text_has_no_needless_parentheses(text, written) -> None:
    tree = parse_condition(text, LANGUAGE)[1]
    found = evaluate(tree, {"query": C("q"), "key": C("k", least=0)}, c_text)
    assert found.text == written


def test_numbers_are_folded() -> None:
    assert c_text.add(number(2), number(3)) == number(5)
    assert c_text.less(number(2), number(3)).text == "true"
    assert c_text.where(c_text.truth(False), C("a"), C("b")).text == "b"
