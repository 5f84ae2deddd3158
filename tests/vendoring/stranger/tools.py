"""Compilers, CMake and programs as someone uses them who has a vendored folder and no fa4gen."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion")
LIBRARIES = ("-ldl", "-lm", "-lpthread")
C99 = ("-std=c99",)
CXX17 = ("-x", "c++", "-std=c++17")


def need(program: str) -> str:
    """Return the program's path, or skip the test."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on this machine")
    return found


def call(*command: str | Path, cwd: Path, status: int | None = 0, **environment: str) -> str:
    """Run a program that must end with ``status`` (None: any); return all that it wrote."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    words = " ".join(map(str, command))
    assert status is None or done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}"
    return done.stdout


def sources(folder: Path) -> list[Path]:
    """The C files of the library in a vendored folder."""
    return [*sorted(folder.glob("src/*.c")), *sorted(folder.glob("cubins/*.c"))]


@dataclass(frozen=True)
class Objects:
    """A vendored folder and its compiled C files."""

    folder: Path
    build: Path
    compiler: str
    flags: tuple[str, ...]

    def compile(self, source: Path) -> Path:
        target = self.build / f"{source.parent.name}_{source.stem}.o"
        call(self.compiler, *self.flags, "-c", source, "-o", target, cwd=self.build)
        return target

    def compile_all(self, *more: Path) -> list[Path]:
        self.build.mkdir(parents=True, exist_ok=True)
        return [self.compile(source) for source in (*sources(self.folder), *more)]

    def link(self, name: str, objects: Sequence[Path]) -> Path:
        program = self.build / name
        call(self.compiler, *objects, *LIBRARIES, "-o", program, cwd=self.build)
        return program

    def selftest(self) -> Path:
        """Build the self-test; returns the program."""
        return self.link("selftest", self.compile_all(self.folder / "test" / "selftest.c"))


def cmake(source: Path, build: Path, *options: str) -> str:
    """Configure and build; returns what CMake wrote."""
    generator = ("-G", "Ninja") if shutil.which("ninja") else ()
    said = call(need("cmake"), "-S", source, "-B", build, *generator, *options, cwd=source)
    return said + call("cmake", "--build", build, cwd=source)
