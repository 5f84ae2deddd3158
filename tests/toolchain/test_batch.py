from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.toolchain.batch import compile_many
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.toolchain.batch import Outcome
    from fa4gen.toolchain.model import Compiler

NAMES = ("clean", "spill", "undefined", "shared")


@pytest.fixture
def units(sources: Mapping[str, str]) -> list[Unit]:
    return [Unit(name, sources[name], {}, "sm_90a") for name in NAMES]


def summary(outcomes: list[Outcome]) -> list[tuple[str, bool, int]]:
    return [(o.unit.name, o.compiled, o.exit_status) for o in outcomes]


@pytest.mark.compile
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_kernel_has_its_outcome(jobs: int, units: list[Unit], nvrtc: Compiler) -> None:
    seen: list[str] = []
    outcomes = compile_many(
        units, nvrtc, jobs=jobs, on_done=lambda outcome: seen.append(outcome.unit.name)
    )
    assert summary(outcomes) == [
        ("clean", True, 0),
        ("spill", False, 1),
        ("undefined", False, 1),
        ("shared", True, 0),
    ]
    assert sorted(seen) == sorted(NAMES)
    spill, undefined = outcomes[1], outcomes[2]
    assert spill.kernel is not None
    assert spill.problems[0].message.startswith("spill: ")
    assert undefined.kernel is None
    assert undefined.problems[0].line == 2


@pytest.mark.compile
def test_processes_share_the_cache(units: list[Unit], nvrtc: Compiler, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = compile_many(units, nvrtc, cache=cache, jobs=2)
    again = compile_many(units, nvrtc, cache=cache, jobs=2)
    assert summary(again) == summary(first)
    assert [o.kernel and o.kernel.cached for o in first] == [False, False, None, False]
    assert [o.kernel and o.kernel.cached for o in again] == [True, True, None, True]
    assert [o.kernel and o.kernel.cubin for o in again] == [
        o.kernel and o.kernel.cubin for o in first
    ]


@pytest.mark.compile
def test_an_architecture_that_the_compiler_lacks(
    sources: Mapping[str, str], nvrtc: Compiler
) -> None:
    (outcome,) = compile_many([Unit("shared", sources["shared"], {}, "sm_77a")], nvrtc)
    assert (outcome.compiled, outcome.exit_status) == (False, 4)
