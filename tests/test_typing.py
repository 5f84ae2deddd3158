"""The interface under type checkers: the examples of the documents, kinds of kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TORCH = """\
from collections.abc import Iterator
from typing import Any

class Tensor:
    shape: tuple[int, ...]
    T: Tensor
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __truediv__(self, other: Any) -> Tensor: ...

def __getattr__(name: str) -> Any: ...
def full(*arguments: Any, **options: Any) -> Tensor: ...
def rand(*arguments: Any, **options: Any) -> Tensor: ...
def randn(*arguments: Any, **options: Any) -> Tensor: ...
def tensor(*arguments: Any, **options: Any) -> Tensor: ...
def zeros(*arguments: Any, **options: Any) -> Tensor: ...
"""
"""As much of torch's types as shows where a tensor is taken for a number."""
KINDS = """\
from pathlib import Path

import fa4gen

reveal_type(fa4gen.load("d128_causal_bf16"))
reveal_type(fa4gen.load("gemm_bf16_sm90"))
reveal_type(fa4gen.load("gemm_bf16_sm90", shapes="auto"))
reveal_type(fa4gen.load(Path("mine.yaml"), shapes=["16x4096x4096"]))
reveal_type(fa4gen.load({"kernel": "attention"}))
mine: fa4gen.AttentionKernel = fa4gen.load("mine.yaml")
"""


def checked(folder: Path, files: dict[str, str]) -> str:
    """Return mypy --strict's messages on the files; names not defined in them are of any type."""
    (folder / "stubs" / "torch").mkdir(parents=True)
    (folder / "stubs" / "torch" / "__init__.pyi").write_text(TORCH)
    (folder / "stubs" / "torch" / "nn").mkdir()
    (folder / "stubs" / "torch" / "nn" / "__init__.pyi").write_text(TORCH)
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [
        sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
        "--disable-error-code=name-defined", "--disable-error-code=used-before-def",
        "--follow-imports=silent", f"--cache-dir={folder / 'cache'}", *files,
    ]  # fmt: skip
    path = os.pathsep.join((str(ROOT), str(folder / "stubs")))
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "MYPYPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_kernels_of_shipped_configs_have_their_type(tmp_path: Path) -> None:
    """And the documents' examples are taken: one run, which reads the whole interface."""
    examples = {
        f"{path.stem.lower()}_{number}.py": match[1]
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        for number, match in enumerate(BLOCK.finditer(path.read_text(encoding="utf-8")))
        if "fa4gen." in match[1]
    }
    assert len(examples) > 10
    said = checked(tmp_path, {**examples, "kinds.py": KINDS})
    kinds = re.findall(r'kinds.py:\d+: note: Revealed type is "([^"]*)"', said)
    assert [kind.rpartition(".")[2] for kind in kinds] == [
        "AttentionKernel", "GemmKernel", "KernelSet", "KernelSet", "Any",
    ]  # fmt: skip
    assert "Success: no issues found" in said, said
