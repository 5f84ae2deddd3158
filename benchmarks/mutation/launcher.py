"""Mutants of the C launcher of vendored folders, verified as ``fa4gen vendor verify`` does.

A folder has the kernel of one config, and with it what the launcher does for that kernel alone.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.load import load_config
from fa4gen.designs.registry import design_for
from fa4gen.errors import Fa4genError
from fa4gen.vendoring.emulator_backend import VendoredEmulator
from fa4gen.vendoring.host_build import compile_c, find_c_compiler
from fa4gen.vendoring.standin import StandIn
from fa4gen.verify.run import VerifyOptions, verify_kernel
from fa4gen.workers import Done
from mutation.mutants import configs_of, mutants_of
from mutation.rules import LAUNCHER_RULES
from mutation.text import CText
from mutation.trial import Candidate, Record, runs_of
from tests.vendoring.verify.builds import PREFIX, Builds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.verify.verdict import Verdict
    from mutation.finders import Edit
    from mutation.mutants import Mutant
    from mutation.trial import Status, Task

FILE = "src/launcher.c"
VERIFIED = re.compile(
    r"^/\* ---- (?:The kernels: what the launcher|What the kernels of all families share"
    r"|A call of|Launches).*?(?=^/\* ---- |\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The parts that compute what verify looks at: not unpacking, nor the search for shared memory."""
NOT_VERIFIED = re.compile(
    r"check|is_float32|sha256|kernel_at|graph|is_problem|_name$|text$|arch$|unload|mark"
)
"""Functions of these parts that refuse calls or that verify does not call: tests are theirs."""


@dataclass(frozen=True)
class LauncherEdit:
    """An edit of the launcher, as ``Builds`` takes it."""

    edit: Edit
    path: str = FILE

    def of(self, text: str) -> str:
        """Return the text with the change."""
        return self.edit.of(text)


@dataclass(frozen=True)
class Folder:
    """A vendored folder that is deleted with this object."""

    root: tempfile.TemporaryDirectory[str]
    builds: Builds

    @property
    def launcher(self) -> str:
        """The text of the launcher."""
        return (self.builds.folder / FILE).read_text(encoding="utf-8")

    def object_hash(self, text: str) -> str:
        """Compile a launcher, optimised; CompileError."""
        source, target = (self.builds.scratch / f"same{end}" for end in (".c", ".o"))
        source.write_text(text, encoding="utf-8")
        flags = ["-std=c99", "-O2", "-fPIC", "-w", "-c", f"-I{self.builds.folder / 'src'}"]
        compile_c(find_c_compiler(), flags, [source], target)
        return hashlib.sha256(target.read_bytes()).hexdigest()


@cache
def folder_of(config: str) -> Folder:
    """Vendor the kernel of a config."""
    root = tempfile.TemporaryDirectory(prefix="fa4gen-mutate-")
    places = [Path(root.name, name) for name in ("acme", "scratch")]
    places[1].mkdir()
    return Folder(root, Builds.of([Path(config)], *places))


def folders_of(patterns: Sequence[str], root: Path) -> dict[str, list[str]]:
    """Return the configs of folders, by design."""
    return configs_of(patterns, root)


def find_launcher_mutants(config: str) -> list[Mutant]:
    """Return every mutant of the parts of a launcher that verify looks at."""
    text = CText(folder_of(config).launcher)
    parts = [match.span() for match in VERIFIED.finditer(text.raw)]
    design = design_for(load_config(config).config).name
    found = mutants_of(
        text, LAUNCHER_RULES, subject=config, design=design,
        kernel=f"{Path(config).stem} launcher", file=FILE,
    )  # fmt: skip
    return [
        mutant
        for mutant in found
        if any(start <= mutant.edit.start < end for start, end in parts)
        and not NOT_VERIFIED.search(mutant.function)
    ]


@cache
def _original(config: str) -> str:
    folder = folder_of(config)
    return folder.object_hash(folder.launcher)


def compile_launcher(mutant: Mutant) -> Candidate:
    """Compile a mutant, and compare it with the launcher as it was generated."""
    folder = folder_of(mutant.subject)
    try:
        code = folder.object_hash(mutant.edit.of(folder.launcher))
    except Fa4genError:
        return Candidate(mutant, discarded="does not compile")
    if code == _original(mutant.subject):
        return Candidate(mutant, discarded="same machine code")
    return Candidate(mutant, code)


def verify_launcher(task: Task) -> Done[Record]:
    """Verify a mutant with every seed, until one does not report it."""
    started = time.perf_counter()
    builds = folder_of(task.mutant.subject).builds
    library = builds.library(LauncherEdit(task.mutant.edit))
    (kernel,) = builds.kernels.values()
    plan = kernel.plan
    backend = VendoredEmulator(plan.arch, library, StandIn().path, PREFIX, kernel.symbol)

    def verify(options: VerifyOptions) -> Verdict:
        return verify_kernel(plan, kernel.compiled, backend, options)

    runs = runs_of(verify, task.seeds)
    status: Status = "caught" if all(run.caught for run in runs) else "survived"
    seconds = round(time.perf_counter() - started, 2)
    return Done(Record.of(task.mutant, status, runs=runs, seconds=seconds))
