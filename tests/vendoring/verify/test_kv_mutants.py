"""Launchers of kernels whose keys have a type of their own are refused with one mistake each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER, Mutant, attention

if TYPE_CHECKING:
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

PAGES = Case("pages", 2, 4, 2, 1, 90, "padded", lengths=((1, 90), (1, 33)), multiprocessors=3)
SEQUENCES = Case("sequences", 2, 4, 2, 1, 90, multiprocessors=3)


def of_pages(name: str, old: str, new: str, refused: str = "") -> Mutant:
    return attention(name, old, new, PAGES, refused, "scaled_pages")


def of_sequences(name: str, old: str, new: str, refused: str = "") -> Mutant:
    return attention(name, old, new, SEQUENCES, refused, "scaled")


BYTES = Edit(LAUNCHER, ": kernel->kv_element_bytes,", ": kernel->element_bytes,")
SCALES = "values->value_descale = args->value_descale;"
MUTANTS = (
    Mutant("strides in elements of the query", "scaled_pages", BYTES, PAGES, ""),
    Mutant("strides in elements of the query", "scaled", BYTES, SEQUENCES, ""),
    of_pages("scales of keys for values", SCALES, SCALES.replace("args->value", "args->key")),
    of_sequences("scales of keys for values", SCALES, SCALES.replace("args->value", "args->key")),
    of_pages("scales of the next head", SCALES, SCALES.replace(";", " + 1;")),
    of_sequences("no scales", SCALES, "values->value_descale = NULL;"),
)


@pytest.mark.parametrize(("kernel", "case"), [("scaled_pages", PAGES), ("scaled", SEQUENCES)])
def test_the_launcher_as_it_is_passes(scales: Builds, kernel: str, case: Case) -> None:
    assert scales.refusals(kernel, case) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.kernel}-{mutant.name}")
def test_a_wrong_launcher_is_refused(scales: Builds, mutant: Mutant) -> None:
    found = scales.refusals(mutant.kernel, mutant.case, mutant.edit)
    assert found, "it passes"
    assert mutant.refused in "\n".join(found)
