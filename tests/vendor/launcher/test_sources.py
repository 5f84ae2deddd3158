"""The launcher's text: warnings of four compilers, widths, licence lines."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from fa4gen.render.text_check import first_breach
from tests.vendor.launcher.shipped import shipped_plans

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow")
DIALECTS = (
    ("gcc", "-std=c99"),
    ("clang", "-std=c99"),
    ("g++", "-x", "c++", "-std=c++17"),
    ("clang++", "-x", "c++", "-std=c++17"),
)


@pytest.mark.parametrize("command", DIALECTS, ids=lambda command: command[0])
def test_it_compiles_without_a_warning(launcher_folder, command) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this machine")
    cubins = sorted((launcher_folder / "cubins").glob("*.c"))[:2]
    sources = [*sorted((launcher_folder / "src").glob("*.c")), *cubins]
    made = subprocess.run(
        [*command, *WARNINGS, "-fsyntax-only", *map(str, sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")


def test_the_text_keeps_the_rules_of_generated_files(launcher_folder) -> None:
    for path in sorted(launcher_folder.glob("*/*.[ch]")):
        text = path.read_text()
        assert first_breach(text) is None, path
        assert text.startswith("/* SPDX-License-Identifier: Apache-2.0"), path
        if path.parent.name == "include":  # which names every kernel with its parameters
            continue
        for line in text.splitlines():
            assert len(line) <= 100 or any(plan.name in line for plan in shipped_plans().values())


def test_nothing_is_allocated_and_no_name_is_without_the_prefix(launcher_folder, launcher) -> None:
    """A program with two vendored folders links both."""
    library = launcher_folder / "launcher.so"
    listed = subprocess.run(["nm", "-g", str(library)], capture_output=True, text=True, check=True)
    names = [line.split()[-2:] for line in listed.stdout.splitlines()]
    defined = {name for kind, name in names if kind in "TDBRV"}
    assert {name for name in defined if not name.startswith("acme_")} <= {
        "_init", "_fini", "__wrap_dlopen",
    }  # fmt: skip
    wanted = {name.split("@")[0] for kind, name in names if kind == "U"}
    assert not wanted & {"malloc", "calloc", "realloc", "free", "pthread_mutex_lock"}


def test_every_status_that_the_sources_return_has_words(launcher_folder, launcher) -> None:
    """Each reason beside each argument that it is written beside, and those set apart."""
    status_rows = (launcher_folder / "src/status.c").read_text()
    for path in sorted((launcher_folder / "src").glob("*.c")):
        if path.name == "status.c":
            continue
        text = path.read_text()
        pairs = re.findall(r"REFUSED\((?:ACME_ARG_)?([A-Z_]+),\s*(?:ACME_)?([A-Z_]+)\)", text)
        for argument, reason in pairs:
            assert f"ROW({argument}, {reason}," in status_rows, (path.name, argument, reason)
