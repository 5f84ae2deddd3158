"""The packages: imports go one way, heavy packages are imported late, modules stay small."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fa4gen

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(fa4gen.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400
AXES = {"masks"}
"""What configs combine freely."""
MAY_IMPORT = {
    **{package: set() for package in AXES},
    "config": AXES,
    "designs": {"config", *AXES},
    "render": {"designs", "config", *AXES},
    "toolchain": {"render", "designs", "config", *AXES},
    "runtime": {"designs", "config", *AXES},
    "emulator": set(),
    "vendor": {
        "verify", "emulator", "toolchain", "runtime", "render", "designs", "config", *AXES
    },
    "verify": {"emulator", "toolchain", "runtime", "render", "designs", "config", *AXES},
    "bench": {"vendor", "verify", "toolchain", "runtime", "render", "designs", "config", *AXES},
    "sweep": {"verify", "toolchain", "runtime", "render", "designs", "config", *AXES},
}  # fmt: skip
"""Every package but the command line, which may import all; single modules are open to all."""
HEAVY = ("cupy", "cuda", "torch", "rich", "numpy", "ml_dtypes")


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that are imported anywhere in ``tree``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """The imports that importing the module causes, except those for types."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):  # not those under TYPE_CHECKING
            yield node


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_every_room_has_its_place() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == {*MAY_IMPORT, "cli"}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package) -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] == package
        for module in imported(ast.parse(path.read_text(encoding="utf-8")))
        if module.startswith("fa4gen.") and len(list(PACKAGE.glob(module.split(".")[1] + "/")))
        if module.split(".")[1] not in {package, *MAY_IMPORT[package]}
    ]
    assert wrong == []


def test_heavy_packages_are_imported_only_where_numbers_are_worked_on() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for node in at_import(ast.parse(path.read_text(encoding="utf-8")))
        for module in imported(node)
        if module.split(".")[0] in HEAVY
        if not (
            path.relative_to(PACKAGE).parts[0] in ("verify", "emulator")
            and module.split(".")[0] in ("numpy", "ml_dtypes")
        )
    ]
    assert wrong == []


START = [["--help"], ["list"]]


@pytest.mark.parametrize("command", START, ids=" ".join)
def test_the_command_line_starts_without_heavy_packages(command, tmp_path) -> None:
    code = (
        "import sys; from fa4gen.cli.main import main; main(sys.argv[1:]); "
        f"sys.exit(', '.join(set({HEAVY!r}) - {{'rich'}} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_stays_small(path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < MAX_LINES
