"""Templates mirror designs, and a variant is a file: what a newcomer relies on to find a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from fa4gen.designs.registry import DESIGNS
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES: Final = data_root("templates")
KERNELS: Final = sorted(
    path for path in TEMPLATES.rglob("*.j2") if path.relative_to(TEMPLATES).parts[0] != "vendored"
)
CONDITION: Final = re.compile(r"{%-? *(?:if|elif)\b")
MOST_CONDITIONS: Final = 12
SIGNATURE: Final = re.compile(r"__device__ .*|^ {8,}\S.*\) \{$")
INLINE: Final = re.compile(r"{{[^}]*\bif\b[^}]*}}")


def name_of(path: Path) -> str:
    return str(path.relative_to(TEMPLATES))


def test_each_design_has_a_folder_of_its_name() -> None:
    folders = {path.name for path in TEMPLATES.iterdir() if path.is_dir()}
    assert folders == {design.name for design in DESIGNS} | {"common", "device", "vendored"}
    for design in DESIGNS:
        assert design.template == f"{design.name}/kernel.cu.j2"


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_no_template_is_a_maze(path: Path) -> None:
    found = len(CONDITION.findall(path.read_text()))
    assert found <= MOST_CONDITIONS, (
        f"{name_of(path)} has {found} conditions: divide it by variants"
    )


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_no_signature_is_assembled_of_conditions(path: Path) -> None:
    assembled = [
        line
        for line in path.read_text().splitlines()
        if SIGNATURE.search(line) and len(INLINE.findall(line)) > 1
    ]
    assert assembled == []
