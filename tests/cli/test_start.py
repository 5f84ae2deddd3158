"""How much a command imports before it works: what it needs, not what others need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.config.find import find_configs
from fa4gen.designs.registry import design_for
from tests.shipped import loaded

ROOT = Path(fa4gen.__file__).parent.parent
ROOMS = {
    *("cli", "config", "designs", "epilogues", "expressions", "key_sources", "masks", "render"),
    *("scores", "strict"),
}
"""Packages of fa4gen that rendering is the work of."""
OUTSIDE = {
    *(
        "asyncio",
        "cuda",
        "cupy",
        "difflib",
        "ml_dtypes",
        "numpy",
        "subprocess",
        "torch",
    )
}
"""Modules that take long to import and that rendering has no use for."""
OF_EXPRESSIONS = {"fa4gen.expressions.tree", "fa4gen.masks.expression", "fa4gen.scores.expression"}
"""Modules that only configs with conditions or score functions need: those of these tests have
none."""
MOST_OF_FA4GEN = 126
"""Modules: a command that needs one more is a reason to count again, not an error."""
CODE = """
import json, sys
from fa4gen.cli.main import main
status = main(sys.argv[1:])
json.dump({"status": status, "modules": sorted(sys.modules)}, sys.stderr)
"""


def started(*args: str, cwd: Path) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FA4GEN_CACHE_DIR": str(cwd / "cache")},
        timeout=120,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(done.stderr.splitlines()[-1])
    return found


def one_of_each_design() -> dict[str, Path]:
    return {design_for(loaded(path).config).name: path for path in find_configs(())}


@pytest.mark.parametrize("design", (configs := one_of_each_design()))
def test_rendering_imports_its_own_design(design: str, tmp_path: Path) -> None:
    path = configs[design]
    args = ("render", str(path), "--out", str(tmp_path / "out"))  # click takes difflib for -o
    started(*args, cwd=tmp_path)  # compiles the templates, which takes more modules
    found = started(*args, cwd=tmp_path)
    ours = [name.split(".") for name in found["modules"] if name.startswith("fa4gen.")]
    folders = {name[2] for name in ours if name[1] == "designs" and len(name) > 3}
    assert {name for name in folders if not design.startswith(name)} == {"common"}
    assert {name[1] for name in ours if len(name) > 2} <= ROOMS
    assert sorted(OUTSIDE & set(found["modules"])) == []
    activates = "activation:" in loaded(path).text
    assert bool(OF_EXPRESSIONS & set(found["modules"])) == activates
    assert len(ours) <= MOST_OF_FA4GEN
    of_blackwell = [name for name in ours if name[-1].startswith("blackwell_")]
    assert not of_blackwell or (design.startswith("attention") and "sm100" in design)


def test_rendering_expressions_takes_no_heavy_module(tmp_path: Path) -> None:
    found = started("render", "--dry-run", "d128_documents_bf16", cwd=tmp_path)
    assert set(found["modules"]) >= OF_EXPRESSIONS - {"fa4gen.scores.expression"}
    assert sorted(OUTSIDE & set(found["modules"])) == []
