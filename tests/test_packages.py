"""The packages: imports go one way, heavy packages are imported late, modules stay small."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fa4gen

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(fa4gen.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400
AXES = {"epilogues", "key_sources", "masks", "scores", "strict"}
"""The packages that configs combine freely, and the base of their models."""
MAY_IMPORT = {
    "expressions": set(),
    "strict": set(),
    **{package: {"expressions", "strict"} for package in AXES - {"strict"}},
    "designs": {"expressions", *AXES},
    "config": {"designs", "expressions", *AXES},
    "render": {"designs", "config", *AXES},
    "toolchain": {"render", "designs", "config", *AXES},
    "runtime": {"designs", "config", *AXES},
    "scales": {"runtime"},
    "emulator": {"strict"},
    "vendoring": {
        "verify", "emulator", "toolchain", "runtime", "render", "designs", "config",
        "expressions", *AXES
    },
    "verify": {
        "scales", "emulator", "toolchain", "runtime", "render", "designs", "config",
        "expressions", *AXES
    },
    "bench": {
        "vendoring", "verify", "scales", "toolchain", "runtime", "render", "designs", "config",
        *AXES
    },
    "tune": {
        "bench", "vendoring", "sweep", "verify", "toolchain", "runtime", "render", "designs",
        "config", *AXES
    },
    "sweep": {"verify", "toolchain", "runtime", "render", "designs", "config", *AXES},
}  # fmt: skip
"""Every package but the command line, which may import all; single modules are open to all."""
LAYERS = (
    {"errors", "names", "ptx"},
    {"coverage"},
    {"report"},
    {"state"},
    {"translate"},
    {"instructions", "checks", "timeline"},
    {"scheduling"},
    {"program"},
    {"recorder", "launch_file"},
    {"__init__"},
)
"""The emulator's layers, the lowest first: a module imports from its own layer and lower ones."""
INSTRUCTION_LAYERS = (
    {"__init__"}, {"scalar"}, {"memory"}, {"sync"}, {"copy"}, {"mma"}, {"wgmma", "tcgen05"},
    {"families"},
)  # fmt: skip
"""The layers of its instructions."""
HEAVY = ("cupy", "cuda", "torch", "numpy", "ml_dtypes")


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


def module_of(path: Path) -> str:
    """The dotted name that ``path`` is imported by."""
    return ".".join(("fa4gen", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


@dataclass(frozen=True)
class Facts:
    """Facts about a module for the tests; its tree takes long to make, and much memory."""

    imported: tuple[str, ...]
    """Modules that are imported anywhere."""
    at_import: tuple[str, ...]
    """Those that importing the module imports."""
    named: tuple[tuple[str, str], ...]
    """Modules that are imported anywhere, and what of them."""
    calls: frozenset[tuple[str, str]]
    """See ``calls``."""
    pickles: tuple[str | None, ...]
    """The argument about pickles of each call of np.load."""


@cache
def facts_of(path: Path) -> Facts:
    """Read a module once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named: list[tuple[str, str]] = []
    pickles = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            named += [(node.module, one.name) for one in node.names]
        elif isinstance(node, ast.Import):
            named += [(one.name, "") for one in node.names]
        elif isinstance(node, ast.Call) and next(calls(node), None) == ("np", "load"):
            given = {one.arg: ast.unparse(one.value) for one in node.keywords}
            pickles.append(given.get("allow_pickle"))
    return Facts(
        tuple(imported(tree)),
        tuple(module for node in at_import(tree) for module in imported(node)),
        tuple(named),
        frozenset(calls(tree)),
        tuple(pickles),
    )


@cache
def graph() -> dict[str, set[str]]:
    """By module, the modules of the package that it names in any import, those for types too."""
    names = {module_of(path): path for path in MODULES}
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        used = set()
        for module, one in facts_of(path).named:
            full = f"{module}.{one}"
            used.add(full if full in names else module)
        found[name] = {one for one in used if one in names} - {name}
    return found


def circles(imports: dict[str, set[str]]) -> list[str]:
    """Circles in ``imports``, each as a text."""
    done: set[str] = set()
    found = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append(" -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for other in sorted(imports[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(imports):
        visit(name, ())
    return found


def upward(layers: tuple[set[str], ...], prefix: str) -> list[str]:
    """Imports of modules below ``prefix`` from a higher layer."""
    layer_of = {part: number for number, parts in enumerate(layers) for part in parts}

    def number(module: str) -> int:
        return layer_of[module.removeprefix(prefix).lstrip(".").split(".")[0] or "__init__"]

    return [
        f"{name} imports {other}"
        for name, used in graph().items()
        if name.startswith(prefix)
        for other in used
        if other.startswith(prefix) and number(other) > number(name)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_every_room_has_its_place() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == {*MAY_IMPORT, "cli"}


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_go_one_way(package) -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] == package
        for module in facts_of(path).imported
        if module.startswith("fa4gen.") and (PACKAGE / module.split(".")[1]).is_dir()
        if module.split(".")[1] not in {package, *MAY_IMPORT[package]}
    ]
    assert wrong == []


def test_no_circles_of_imports() -> None:
    assert circles(graph()) == []


def test_a_circle_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert circles(imports) == ["b -> c -> b"]


def test_imports_of_the_emulator_lead_downward() -> None:
    assert upward(LAYERS, "fa4gen.emulator") == []


def test_imports_of_the_instructions_lead_downward() -> None:
    assert upward(INSTRUCTION_LAYERS, "fa4gen.emulator.instructions") == []


def is_numeric(path: Path) -> bool:
    """Whether a module works on arrays of numbers."""
    place = path.relative_to(PACKAGE)
    is_single = place.as_posix() == "tune/model/attention.py"
    return is_single or place.parts[0] in ("verify", "emulator", "scales")


def test_heavy_packages_are_imported_only_where_numbers_are_worked_on() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module in facts_of(path).at_import
        if module.split(".")[0] in HEAVY
        if not (is_numeric(path) and module.split(".")[0] in ("numpy", "ml_dtypes"))
    ]
    assert wrong == []


START = [["--help"], ["list"]]


@pytest.mark.parametrize("command", START, ids=" ".join)
def test_the_command_line_starts_without_heavy_packages(command, tmp_path) -> None:
    code = (
        "import sys; from fa4gen.cli.main import main; main(sys.argv[1:]); "
        f"sys.exit(', '.join(set({HEAVY!r}) & set(sys.modules)) or 0)"
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


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names of functions that are called: ``("", "exec")``, ``("np", "load")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "", node.func.id
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield node.func.value.id, node.func.attr


def test_code_is_made_from_text_in_one_place() -> None:
    """The places that could run code of a file; Jinja's templates and modules are the rest."""
    doors = {
        **{("", name): {"emulator/translate/generated_code.py"} for name in ("exec", "compile")},
        ("", "eval"): set(),
        ("", "__import__"): set(),
        ("yaml", "load"): set(),
        ("pickle", "load"): set(),
        ("pickle", "loads"): {"workers.py"},  # whether an error can be sent to another process
        ("marshal", "loads"): set(),
        ("bucket", "bytecode_from_string"): {"render/compiled.py"},  # of a file that is one's own
        ("os", "system"): set(),
        ("runpy", "run_path"): set(),
    }
    found: dict[tuple[str, str], set[str]] = {door: set() for door in doors}
    for path in MODULES:
        for call in facts_of(path).calls & found.keys():
            found[call].add(name_of(path))
    assert found == doors


def test_arrays_are_read_without_pickles() -> None:
    found = {name_of(path): facts_of(path).pickles for path in MODULES}
    assert {value for values in found.values() for value in values} == {"False"}, found
