"""The kinds of residual: each against its definition, and nothing else asks which one it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

import fa4gen
from fa4gen.epilogues import RESIDUALS, ResidualValue, residual_of
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(fa4gen.__file__).parent
DEFINED = {
    "matrix": lambda c, i, j: c[i, j],
    "row": lambda c, i, j: c[j],
    "column": lambda c, i, j: c[i],
}
"""The addend of each kind for the element of row i and column j."""
KINDS = [kind for kind in RESIDUALS if kind.exists]
NAMES = {kind.name for kind in RESIDUALS}
IN_TEXT = re.compile(
    r"residual\s*[!=]=\s*[\"']|residual\s+(not )?in\s*[(\[]|RESIDUAL_(?!NONE\b)[A-Z]"
)


def test_every_kind_has_a_word_and_a_definition() -> None:
    assert tuple(get_args(get_args(ResidualValue)[0])) == tuple(kind.name for kind in RESIDUALS)
    assert set(DEFINED) == {kind.name for kind in KINDS}
    assert all(residual_of(kind.name) is kind for kind in RESIDUALS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "batch"])
def test_what_is_added_is_what_is_defined(kind, lead) -> None:
    c = np.random.default_rng(0).random((*lead, *kind.extents(7, 5)))
    found = np.broadcast_to(kind.rows_of(c, slice(2, 6)), (*lead, 4, 5))
    for batch, one in enumerate(c if lead else [c]):
        expected = [[DEFINED[kind.name](one, i, j) for j in range(5)] for i in range(2, 6)]
        assert np.array_equal(found[batch] if lead else found, expected)


def test_elements_are_counted() -> None:
    for kind in KINDS:
        c = np.arange(kind.elements(7, 5)).reshape(kind.extents(7, 5))
        assert np.unique(np.broadcast_to(kind.rows_of(c, slice(7)), (7, 5))).size == c.size
    assert residual_of("none").elements(7, 5) == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kernels_of_all_element_sizes_can_load_it(kind) -> None:
    for loads, words in ((kind.hopper, {2: 4, 4: 2}), (kind.blackwell, {2: 1, 4: 1})):
        assert {size: len(load.words) for size, load in loads.items()} == words
    assert {size: len(load.words) for size, load in kind.hopper_swapped.items()} == {2: 4}


def questions(tree: ast.AST) -> Iterator[int]:
    """Lines that compare with the name of a kind, or choose by it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            literals = {x.value for x in ast.walk(node) if isinstance(x, ast.Constant)}
            if literals & NAMES and "residual" in ast.unparse(node).lower():
                yield node.lineno
        if isinstance(node, ast.Dict):
            keys = {x.value for x in node.keys if isinstance(x, ast.Constant)}
            if keys and keys <= NAMES and len(keys) > 1:
                yield node.lineno


def test_nothing_else_asks_for_a_kind() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "epilogues"]
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{line}"
        for path in sorted(modules)
        for line in questions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    templates = data_root("templates")
    for path in sorted(templates.rglob("*.j2")):
        text = path.read_text(encoding="utf-8")
        found += [
            f"{path.relative_to(templates)}:{number}"
            for number, line in enumerate(text.splitlines(), 1)
            if IN_TEXT.search(line)
        ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    ["plan.residual == 'row'", "facts['residual'] in ('none', 'row')", "{'none': 0, 'row': 1}"],
)
def test_such_questions_are_found(code: str) -> None:
    assert list(questions(ast.parse(code)))
    assert not list(questions(ast.parse("plan.c.exists and facts['residual'] == other")))
