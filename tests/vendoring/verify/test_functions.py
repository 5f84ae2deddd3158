"""Kernels whose masks and scores read tensors, launched by the folder's own C code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER

if TYPE_CHECKING:
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

CASE = Case("keys", 2, 4, 2, 70, 130)
COPY = "memcpy(packed->values.attention.given, args->tensors,"
MUTANTS = {
    "the first is given twice": Edit(
        LAUNCHER, "args->tensors, sizeof packed->values.attention.given);",
        "args->tensors, sizeof (void *));\n  packed->values.attention.given[1] = args->tensors[0];",
    ),
    "none is given": Edit(LAUNCHER, COPY, f"if (0) {COPY}"),
    "the first is the second": Edit(LAUNCHER, COPY, COPY.replace("tensors,", "tensors + 1,")),
}  # fmt: skip


@pytest.mark.parametrize("name", ["sloping", "documents"])
def test_the_launcher_as_it_is_passes(functions: Builds, name: str) -> None:
    assert functions.refusals(name, CASE) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_launcher_is_refused(functions: Builds, mutant: str) -> None:
    assert functions.refusals("documents", CASE, MUTANTS[mutant])
