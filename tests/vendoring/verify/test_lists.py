"""Kernels that walk lists of blocks: launched by the folder's C code, and its own test program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.emulator.report import Verdict
from fa4gen.errors import ConfigError
from fa4gen.vendoring.family import family_of
from fa4gen.verify.cases import Case
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import LAUNCHER
from tests.vendoring.verify.test_selftest import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

CASE = Case("keys", 2, 4, 2, 150, 130)
GIVEN = "memcpy(packed->values.attention.given, args->tensors,"
SWAP = (
    "{0}\n  packed->values.attention.given[1] = args->tensors[3];"
    "\n  packed->values.attention.given[3] = args->tensors[1];"
)
COPY = f"{GIVEN} sizeof packed->values.attention.given);"
MUTANTS = {
    "no list is given": Edit(LAUNCHER, COPY, f"{GIVEN} sizeof (void *));"),
    "ranges are keys of rows": Edit(LAUNCHER, COPY, SWAP.format(COPY)),
}
WRONG_LISTS = {
    "a block beside": ("int64_t entry = 64 * block;", "int64_t entry = 64 * (block ^ 1);"),
    "every block is seen as a whole": ("all &= sees;", ""),
    "every block is seen between the ends of its rows": ("between &= sees;", ";"),
    "a key less": ("= key + 1;", "= key;"),
    "the tile before": ("range[0] = tile;", "range[0] = tile > 0 ? tile - 1 : 0;"),
    "lists of another head": ("spot.head = head,", "spot.head = 1 - head,"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorder")


@pytest.mark.parametrize("name", ["documents", "blocks"])
def test_the_launcher_as_it_is_passes(lists: Builds, name: str) -> None:
    assert lists.refusals(name, CASE) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_launcher_is_refused(lists: Builds, mutant: str) -> None:
    assert lists.refusals("documents", CASE, MUTANTS[mutant])


@pytest.mark.parametrize(("arch", "count"), [("sm_90a", 2), ("sm_100a", 1)])
def test_the_selftest_makes_lists(
    lists: Builds, cache: Path, tmp_path: Path, arch: str, count: int
) -> None:
    done, recorder = run(lists, arch, cache, tmp_path, lists.selftest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"passed: {count} of 3 kernels were run" in done.stdout
    verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
    assert verdicts == {Verdict.CLEAN}


@pytest.mark.parametrize("mutant", WRONG_LISTS)
def test_wrong_lists_are_found_in_the_numbers(
    lists: Builds, cache: Path, tmp_path: Path, mutant: str
) -> None:
    right, wrong = WRONG_LISTS[mutant]
    program = lists.folder / "test" / "selftest.c"
    text = program.read_text()
    lists_begin = text.index("static int sees_at")
    assert right in text[lists_begin:]
    try:
        program.write_text(text[:lists_begin] + text[lists_begin:].replace(right, wrong, 1))
        other = lists.selftest()
    finally:
        program.write_text(text)
    done, _ = run(lists, "sm_90a", cache, tmp_path, other)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_header_names_the_lists(lists: Builds) -> None:
    header = (lists.folder / "include" / "acme.h").read_text()
    named = re.findall(r"tensors\[(\d)\]: (\w+), int32_t \(([^)]*)\)", header)
    assert ("1", "block_ranges", "batch, 1, tiles, 6, 2") in named
    assert ("1", "block_ranges", "1, query_heads, tiles, 6, 2") in named
    assert ("2", "block_entries", "entries") in named
    assert ("3", "row_keys", "batch, 1, rows, 2") in named


def test_more_tensors_than_the_launcher_passes_are_refused() -> None:
    names = [f"tensor{number}" for number in range(6)]
    keys = {
        "kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64, "blocks": "listed",
        "mask": " or ".join(f"{name}[key] == row" for name in names),
        "parameters": {name: {"dtype": "int32", "shape": ["keys"]} for name in names},
    }  # fmt: skip
    plan = build_plan(load_mapping(keys, "kernel").config)
    with pytest.raises(ConfigError, match="9 tensors with the lists of blocks"):
        family_of(plan).refuse(plan)
