"""A vendored folder built again and again, each time with one of its C files edited."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fa4gen.emulator import Program
from fa4gen.errors import Fa4genError
from fa4gen.vendoring.binding import Binding
from fa4gen.vendoring.emulator_backend import VendoredEmulatedKernel
from fa4gen.vendoring.folder_files import folder_files
from fa4gen.vendoring.host_build import INTERPOSER, compile_c, find_c_compiler
from fa4gen.vendoring.kernels import build_kernels
from fa4gen.vendoring.model import Request
from fa4gen.vendoring.standin import StandIn
from fa4gen.verify.family import family_of
from fa4gen.verify.judge import judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.vendoring.model import VendoredKernel
    from fa4gen.verify.verdict import NamedCase

SEED = 11
PREFIX = "acme"
FLAGS = ("-std=c99", "-O0", "-fPIC", "-w")


class ChangesFile(Protocol):
    """One change of one of a folder's C files."""

    @property
    def path(self) -> str:
        """The file, from the folder on."""

    def of(self, text: str) -> str:
        """Return the file's text with the change."""


@dataclass(frozen=True)
class Edit:
    """``old``, which the file has once behind ``anchor``, becomes ``new``."""

    path: str
    old: str
    new: str
    anchor: str = ""

    def of(self, text: str) -> str:
        head, anchor, rest = text.partition(self.anchor) if self.anchor else ("", "", text)
        assert rest.count(self.old) == 1 or self.anchor, f"{self.path}: {self.old}"
        assert self.old in rest, f"{self.path}: {self.old}"
        return head + anchor + rest.replace(self.old, self.new, 1)


@dataclass
class Builds:
    """The folder's objects, and the kernels that are in it by their names without the prefix."""

    folder: Path
    scratch: Path
    kernels: Mapping[str, VendoredKernel]
    _objects: dict[str, Path] = field(default_factory=dict)
    _programs: dict[str, Program] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def of(cls, paths: Sequence[Path], folder: Path, scratch: Path) -> Builds:
        """Vendor the kernels of configs into ``folder``."""
        kernels = build_kernels(paths, PREFIX)
        for path, text in folder_files(Request(PREFIX), kernels).items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return cls(folder, scratch, {kernel.name: kernel for kernel in kernels})

    def library(self, edit: ChangesFile | None = None) -> Path:
        """Build the folder, with one edit if it is given."""
        interposer = self.scratch / "interposer.c"
        interposer.write_text(INTERPOSER)
        target = self.scratch / f"lib{next(self._numbers)}.so"
        flags = ["-shared", "-fPIC", "-Wl,--wrap=dlopen", f'-DSTAND_IN="{StandIn().path}"']
        compile_c(find_c_compiler(), flags, [*self._built(edit), interposer], target)
        return target

    def selftest(self, edit: ChangesFile | None = None) -> Path:
        """Build the folder's program that tests it, which the edit may be of."""
        program = self.folder / "test" / "selftest.c"
        if edit is not None and edit.path == "test/selftest.c":
            text = program.read_text().replace("../src/", f"{self.folder}/src/")
            program = self.scratch / "selftest.c"
            program.write_text(edit.of(text))
            edit = None
        target = self.scratch / f"selftest{next(self._numbers)}"
        compile_c(find_c_compiler(), ["-O0"], [program, *self._built(edit), Path("-lm")], target)
        return target

    def _built(self, edit: ChangesFile | None) -> list[Path]:
        objects = []
        for path in sorted([*self.folder.glob("src/*.c"), *self.folder.glob("cubins/*.c")]):
            name = path.relative_to(self.folder).as_posix()
            if edit is not None and name == edit.path:
                edited = self.scratch / f"{next(self._numbers)}_{path.name}"
                edited.write_text(edit.of(path.read_text()))
                objects.append(self._compile(edited))
            else:
                if name not in self._objects:
                    self._objects[name] = self._compile(path)
                objects.append(self._objects[name])
        return objects

    def refusals(self, name: str, case: NamedCase, edit: ChangesFile | None = None) -> list[str]:
        """Return what verify finds wrong with a kernel on a case; [] where it passes."""
        kernel = self.kernels[name]
        if name not in self._programs:
            self._programs[name] = Program(kernel.compiled.ptx)
        binding = Binding(self.library(edit), PREFIX).kernel(kernel.symbol)
        runnable = VendoredEmulatedKernel(kernel.plan, self._programs[name], binding, StandIn())
        problem = family_of(kernel.plan).draw(case, SEED)
        memory = problem.memory
        reference = problem.reference(np)
        for _ in range(2):
            try:
                image = runnable.run(memory)
            except Fa4genError as error:
                return [f"emulator: {why.message}" for why in error.problems]
            failures, _ = judge(memory, image, image, reference)
            if failures:
                return [f"{one.check}: {one.message}" for one in failures]
        return []

    def _compile(self, source: Path) -> Path:
        target = self.scratch / f"{source.stem}.o"
        flags = [*FLAGS, "-c", f"-I{self.folder / 'src'}"]
        compile_c(find_c_compiler(), flags, [source], target)
        return target
