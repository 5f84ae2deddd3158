"""``--verify`` compiles and runs code of the folder only as the lock has it, or by agreement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import pytest

from fa4gen.cli import vendor_verify
from fa4gen.vendoring.changed_code import changed_code
from fa4gen.vendoring.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.vendoring.folder.conftest import Vendored

pytestmark = pytest.mark.compile

RUNS = "\n__attribute__((constructor)) static void run(void) { __builtin_trap(); }\n"


def appended(folder: Path) -> None:
    path = folder / "src/launcher.c"
    path.write_text(path.read_text() + RUNS)


def added(folder: Path) -> None:
    (folder / "src/more.c").write_text(RUNS)


def shadowed(folder: Path) -> None:
    (folder / "include/sys").mkdir()
    (folder / "include/sys/types.h").write_text(RUNS)


def linked(folder: Path) -> None:
    (folder / "src/launcher.c").rename(folder / "launcher.c")
    (folder / "src/launcher.c").symlink_to("../launcher.c")


def linked_folder(folder: Path) -> None:
    (folder / "include/sys").symlink_to("/usr/include/sys")


def deleted(folder: Path) -> None:
    (folder / "src/launcher.c").unlink()


CHANGES: dict[Callable[[Path], None], str] = {
    appended: "src/launcher.c (changed)",
    added: "src/more.c (not fa4gen's)",
    shadowed: "include/sys/types.h (not fa4gen's)",
    linked: "src/launcher.c (behind a link)",
    linked_folder: "include/sys (not fa4gen's)",
    deleted: "src/launcher.c (missing)",
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_code_is_neither_compiled_nor_run(
    change: Callable[[Path], None], vendored: Vendored
) -> None:
    assert changed_code(vendored.folder, read_lock(vendored.folder)) == {}
    change(vendored.folder)
    said = vendored.refused("verify", "attn", status=3)
    assert said.count("verify compiles and runs C code here") == 1
    assert f"not as fa4gen.lock has it: {CHANGES[change]}\n" in said
    assert "--run-changed agrees to run it" in said
    assert "compiled and run here" not in said


def test_other_files_are_not_compiled(vendored: Vendored) -> None:
    (vendored.folder / "README.md").write_text("mine")
    (vendored.folder / "test/selftest.c").write_text(RUNS)
    assert changed_code(vendored.folder, read_lock(vendored.folder)) == {}


def test_long_lists_are_cut(vendored: Vendored) -> None:
    for number in range(20):
        (vendored.folder / f"src/more{number:02}.c").write_text(RUNS)
    said = vendored.refused("verify", "attn", status=3)
    assert "src/more07.c (not fa4gen's), and 12 files more\n" in said


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(answer: bool, vendored, monkeypatch) -> None:
    appended(vendored.folder)
    built: list[Path] = []
    monkeypatch.setattr(
        vendor_verify.VerifyCall, "_one", lambda _, folder, __: (built.append(folder), [])[1:] * 2
    )
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: answer)
    status, _, said = vendored.run("verify", "attn")
    assert "src/launcher.c (changed)" in said
    assert built == ([vendored.folder] if answer else [])
    assert status == (0 if answer else 3)
    assert ("nothing was compiled or run" in said) == (not answer)


def test_agreement_is_an_option(vendored: Vendored, monkeypatch) -> None:
    appended(vendored.folder)
    monkeypatch.setattr(vendor_verify.VerifyCall, "_one", lambda *_: ([], []))
    ran = vendored.run("verify", "attn", "--run-changed")
    assert ran.status == 0
    assert ran.err.startswith("attn: its C code is compiled and run here\n")
