"""Masks and scores that tell few rows apart: both launchers refuse more of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.names import with_prefix
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from tests.vendoring.launcher.attention_problems import WORKSPACE, plain_problem
from tests.vendoring.launcher.both import CLauncher, Made, Refused, compare, python_outcome
from tests.vendoring.launcher.shipped import PREFIX, WARNINGS, write_launcher
from tests.vendoring.statuses import ARGUMENTS, REASONS

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64}
KEYS = {
    "tree": {"mask": "tree"},
    "causal": {"mask": "causal"},
    "scored": {"mask": "causal", "score": "score + 7 * query - 7 * key"},
    "sequences": {"score": "score + head + batch", "batching": "ragged"},
}
PLANS = {
    name: with_prefix(build_plan(load_mapping({**CONFIG, **keys}, name).config), PREFIX)
    for name, keys in KEYS.items()
}
HOPPER = SimulatedDevice("sm_90a", 132)
QUERY_EXTENT = REASONS.index("BAD_EXTENT") + 256 * ARGUMENTS.index("QUERY")
MOST = 2**28
"""Places that expressions compute with."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> CLauncher:
    """A folder with a kernel for each of KEYS."""
    folder: Path = write_launcher(tmp_path_factory.mktemp("limits") / "acme", PLANS)
    try:
        stand_in = StandIn()
        library = build_library(
            folder, folder / "launcher.so", stand_in=stand_in.path, flags=["-O1", *WARNINGS]
        )
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    return CLauncher(library, stand_in)


def outcome(kernels: CLauncher, name: str, **changes: int) -> Made | Refused:
    """Return the Python launcher's outcome, after comparing it with the C launcher's."""
    plan = PLANS[name]
    problem = replace(plain_problem(plan), **changes)
    expected = python_outcome(plan, problem.python_arguments(plan), 132, WORKSPACE)
    compare(expected, kernels.outcome(plan, problem.c_args(), 132))
    return expected


@pytest.mark.parametrize("rows", [1, 32])
def test_a_tree_may_have_as_many_rows_as_a_number_has_bits(kernels, rows) -> None:
    assert isinstance(outcome(kernels, "tree", query_rows=rows), Made)


@pytest.mark.parametrize("rows", [33, 40])
def test_a_tree_of_more_rows_is_refused(kernels, rows) -> None:
    refused = outcome(kernels, "tree", query_rows=rows)
    assert isinstance(refused, Refused)
    assert refused.arguments == {"query"}
    assert "at most those that its mask tells apart" in kernels.on(HOPPER).words(QUERY_EXTENT)


@pytest.mark.parametrize(
    ("name", "changes", "argument"),
    [
        ("scored", {"query_rows": MOST + 1}, "query"),
        ("scored", {"key_rows": MOST + 1}, "key"),
        ("scored", {"batch": MOST + 1}, "query"),
        ("scored", {"query_heads": MOST + 4, "key_heads": 4}, "query"),
        ("tree", {"key_rows": MOST + 1, "query_rows": 1}, "key"),
        ("sequences", {"batch": MOST + 1}, "query_offsets"),
    ],
)
def test_what_an_expression_cannot_compute_with_is_refused(
    kernels, name, changes, argument
) -> None:
    refused = outcome(kernels, name, **changes)
    assert isinstance(refused, Refused)
    assert argument in refused.arguments


def test_without_an_expression_there_may_be_more(kernels) -> None:
    assert isinstance(outcome(kernels, "causal", key_rows=MOST + 1), Made)
