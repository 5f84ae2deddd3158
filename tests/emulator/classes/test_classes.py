"""Known classes of bugs: each kernel is reported, its corrected twin is clean, under every seed."""

from __future__ import annotations

import pytest

from fa4gen.emulator import SCHEDULES
from tests.emulator.classes.bug_class import source
from tests.emulator.classes.harness import BUG_CLASSES, SEEDS, complaints
from tests.emulator.classes.mutant_classes import MUTANT_CLASSES
from tests.emulator.classes.table import BY_NAME, keys
from tests.emulator.mutations.mutant import CLASSES
from tests.emulator.mutations.sources import BUGS

FEW = len(SCHEDULES)  # each of them once

BY_CLASS = pytest.mark.parametrize("bug", BUG_CLASSES, ids=[bug.name for bug in BUG_CLASSES])


@pytest.mark.compile
@BY_CLASS
def test_a_class_is_reported_and_its_twin_clean(bug) -> None:
    assert complaints(bug, range(FEW)) == []


@pytest.mark.seeds
@BY_CLASS
def test_classes_under_many_seeds(bug) -> None:
    assert complaints(bug, range(FEW, SEEDS)) == []


@BY_CLASS
def test_both_twins_stand_in_the_source(bug) -> None:
    """Otherwise there would be nothing to find, or to correct."""
    text = source(bug.file)
    start = text.index(f" {bug.name}(")
    kernel = text[start : text.index("\n}\n", start)]
    assert "FIXED(" in kernel or "BROKEN(" in kernel
    assert all(found.at in kernel for found in bug.found)
    assert bug.group in CLASSES


def test_names_are_unique() -> None:
    names = [bug.name for bug in BUG_CLASSES]
    assert len(set(names)) == len(names)


def test_every_mutant_is_of_one_class() -> None:
    listed = [name for one in (*BUG_CLASSES, *MUTANT_CLASSES) for name in one.mutants]
    assert sorted(listed) == sorted(BY_NAME)


def test_sources_are_known() -> None:
    used = {key for one in (*BUG_CLASSES, *MUTANT_CLASSES) for key in keys(one)}
    assert used == set(BUGS)


def test_enough_classes_have_public_reports() -> None:
    assert sum(bool(keys(one)) for one in (*BUG_CLASSES, *MUTANT_CLASSES)) >= 40
