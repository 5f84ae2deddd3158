"""The C of folders with one kernel: strict compilers take it, and the README shows its call."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.render.environment import open_templates
from fa4gen.render.text_check import first_breach
from fa4gen.vendoring.folder_files import ROOTS, template_values
from fa4gen.vendoring.host_build import find_c_compiler
from fa4gen.vendoring.model import Request
from fa4gen.vendoring.names import with_prefix
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


ALWAYS = (
    "d128_causal_bf16", "gemm_bf16_sm90", "decode_d128_bf16", "d128_ragged_causal_bf16",
    "fa4_d64_paged_window_sinks_bf16", "d128_block_sparse_bf16",
)  # fmt: skip
"""Compiled in every run: one of each kind."""


def chosen() -> list[pytest.ParameterSet]:
    """The shipped kernels, all but a few with the mark of long runs."""
    return [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.seeds)
        for name in shipped_plans()
    ]


def write_sources(folder: Path, name: str) -> None:
    facts = (facts_of(name, shipped_plans()[name]),)
    values = template_values(Request(PREFIX), facts)
    templates = open_templates().environment()
    for path, template in ROOTS:
        if path.endswith((".c", ".h")):
            text = templates.get_template(template).render(values)
            assert first_breach(text) is None, path
            lines = [line for line in text.splitlines() if len(line) > 100]
            assert [line for line in lines if name not in line] == [], path
            target = folder / path.format(prefix=PREFIX)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", chosen())
def test_strict_compilers_take_it(name: str, tmp_path: Path) -> None:
    write_sources(tmp_path, name)
    for source in SOURCES:
        for language in languages():
            subprocess.run(
                [*find_c_compiler(), *language, *WARNINGS, "-S", "-o", "-", tmp_path / source],
                stdout=subprocess.DEVNULL,
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


@pytest.mark.parametrize(
    ("order", "strides"),
    [
        ("arranged", {"a": "(m + 127) / 128", "b": "(n + 127) / 128", "out": "(m + 127) / 128"}),
        ("row_major", {"a": "m", "b": "(n + 0) / 1", "out": "m"}),
    ],
)
def test_scales_of_each_group_are_where_the_readme_says(
    order: str, strides: dict[str, str]
) -> None:
    keys = {
        "kernel": "gemm", "arch": "sm_100a", "dtype": "fp8_e4m3", "scales": "mxfp8",
        "groups": "masked", "scale_order": order, "output_scales": "mxfp8",
        "output_scale_order": order,
    }  # fmt: skip
    plan = with_prefix(build_plan(load_mapping(keys, "scaled").config), PREFIX)
    values = template_values(Request(PREFIX), (facts_of("scaled", plan),))
    text = open_templates().environment().get_template("vendored/build/README.md.j2").render(values)
    for operand, lines in strides.items():
        name = "out_scales" if operand == "out" else f"scale_{operand}"
        assert f"args.{name}.batch_stride = {lines} * args.{name}.stride;" in text


def test_the_launcher_is_the_same_in_every_folder(tmp_path: Path) -> None:
    """But for the table of kernels and their functions."""
    texts = []
    for name in ("gemm_bf16_sm90", "decode_d128_bf16"):
        write_sources(tmp_path / name, name)
        text = (tmp_path / name / "src/launcher.c").read_text()
        table = text[text.index("all_kernels[KERNELS] = {") : text.index("\n};\n")]
        calls = re.findall(rf"^.*{PREFIX}_{name}(?:_|\().*\n(?:  .*\n}}\n)?", text, re.MULTILINE)
        for part in (table, *calls):
            text = text.replace(part, "")
        text = re.sub(r"at most \d+ sequences", "at most some sequences", text)
        texts.append(re.sub(r"\n+", "\n", text))
    assert texts[0] == texts[1]
