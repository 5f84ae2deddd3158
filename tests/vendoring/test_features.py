"""The C of folders with one kernel: strict compilers take it for every combination of features."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.render.environment import open_templates
from fa4gen.render.text_check import first_breach
from fa4gen.vendoring.features import Features, features_of
from fa4gen.vendoring.folder_files import ROOTS, template_values
from fa4gen.vendoring.host_build import find_c_compiler
from fa4gen.vendoring.model import Request
from tests.vendoring.launcher.shipped import PREFIX, WARNINGS, facts_of, shipped_plans

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = ("src/launcher.c", "test/selftest.c")
LANGUAGES = (("-xc", "-std=c99"), ("-xc++", "-std=c++17"))


@lru_cache(maxsize=1)
def languages() -> tuple[tuple[str, ...], ...]:
    """Those that the compiler of this machine takes: some are installed for C alone."""

    def is_taken(language: tuple[str, ...]) -> bool:
        command = [*find_c_compiler(), *language, "-fsyntax-only", "-"]
        done = subprocess.run(command, input=b"", capture_output=True, check=False)
        return done.returncode == 0

    c, cxx = LANGUAGES
    return (c, cxx) if is_taken(cxx) else (c,)


@lru_cache(maxsize=1)
def kernels_by_features() -> dict[Features, str]:
    """One shipped kernel for each combination."""
    found: dict[Features, str] = {}
    for name, plan in shipped_plans().items():
        found.setdefault(features_of((facts_of(name, plan),)), name)
    return found


def chosen() -> list[pytest.ParameterSet]:
    """The kernels, all but one of each kind with the mark of long runs."""
    kinds = set()
    sets = []
    for one, name in kernels_by_features().items():
        kind = (one.families, one.arrays, one.stepped_places, one.tiles, one.lists, one.by_split)
        sets.append(pytest.param(name, marks=() if kind not in kinds else pytest.mark.seeds))
        kinds.add(kind)
    return sets


def write_sources(folder: Path, name: str) -> None:
    facts = (facts_of(name, shipped_plans()[name]),)
    values = template_values(Request(PREFIX), facts)
    templates = open_templates().environment()
    for path, template in ROOTS:
        if path.endswith((".c", ".h")):
            text = templates.get_template(template).render(values)
            assert first_breach(text) is None, path
            if not path.startswith("include/"):  # which has summaries of kernels
                assert max(map(len, text.splitlines())) <= 100 + len(name), path
            target = folder / path.format(prefix=PREFIX)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", chosen())
def test_nothing_is_missing_or_unused(name: str, tmp_path: Path) -> None:
    write_sources(tmp_path, name)
    for source in SOURCES:
        for language in languages():
            subprocess.run(
                [*find_c_compiler(), *language, *WARNINGS, "-fsyntax-only", tmp_path / source],
                check=True,
            )


@pytest.mark.parametrize("name", chosen())
def test_the_call_that_the_readme_shows_gives_all_that_the_kernel_takes(
    name: str, tmp_path: Path
) -> None:
    write_sources(tmp_path, name)
    facts = facts_of(name, shipped_plans()[name])
    values = template_values(Request(PREFIX), (facts,))
    template = open_templates().environment().get_template("vendored/build/README.md.j2")
    text = template.render(values)
    (shown,) = re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "call.c").write_text(shown)
    include = f"-I{tmp_path / 'include'}"
    for language in languages():
        command = [*find_c_compiler(), *language, *WARNINGS, include, "-fsyntax-only"]
        subprocess.run([*command, tmp_path / "call.c"], check=True)
    given = set(re.findall(r"args\.(\w+) = ", shown))
    optional = {"query_descale", "key_descale", "value_descale", "sinks"}
    assert set(facts.launcher.taken_arrays) - optional <= given
    needs_workspace = facts.launcher.workspace_bytes or facts.launcher.share_limit
    assert bool(needs_workspace) == ("workspace" in given)


def test_a_dense_kernel_has_nothing_of_sequences(tmp_path: Path) -> None:
    write_sources(tmp_path, "d128_causal_bf16")
    launcher, selftest = ((tmp_path / source).read_text() for source in SOURCES)
    for word in ("small_array", "place_steps", "page_table:", "values->sinks", "list_entry"):
        assert word not in launcher, word
    assert "length_of" not in selftest


def test_features_are_of_some_kernel() -> None:
    plans = shipped_plans()
    names = ("d128_causal_bf16", "fa4_d64_paged_window_sinks_bf16", "gemm_bf16_sm90")
    each = [features_of((facts_of(name, plans[name]),)) for name in names]
    together = features_of(tuple(facts_of(name, plans[name]) for name in names))
    assert [one.choice for one in each] == [False] * 3
    assert together.choice
    assert together.both
    assert together.values == each[0].values | each[1].values | each[2].values
    assert set(together.arrays) == set(each[1].arrays)
    assert together.sinks
    assert not each[0].sinks
    assert together.array_bits(facts_of(names[0], plans[names[0]]).launcher) == 0
