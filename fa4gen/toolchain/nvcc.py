"""nvcc, where a CUDA toolkit is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fa4gen.errors import MissingCapabilityError, Problem
from fa4gen.toolchain.failures import RefusedError, compile_error, unsupported_arch
from fa4gen.toolchain.model import Built, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = re.compile(r"release \S+, V(\S+)")
_HOST_COMPILER_MISSING = re.compile(
    r"Failed to preprocess host compiler properties|gcc: (?:No such file|not found)"
    r"|nvcc fatal.*[Hh]ost compiler"
)


def find_nvcc() -> Path | None:
    """Return nvcc from FA4GEN_NVCC, CUDA_HOME, CUDA_PATH or PATH, the first that is there.

    MissingCapabilityError when FA4GEN_NVCC does not name a program.
    """
    named = os.environ.get("FA4GEN_NVCC")
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingCapabilityError(
                Problem(
                    f"FA4GEN_NVCC is {named!r}, which is not a program",
                    "Let it name the nvcc to use, or unset it.",
                )
            )
        return Path(found)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        root = os.environ.get(variable)
        if root and (found := shutil.which("nvcc", path=str(Path(root) / "bin"))):
            return Path(found)
    found = shutil.which("nvcc")
    return Path(found) if found else None


class Nvcc:
    """An nvcc program; MissingCapabilityError when none is found."""

    name = "nvcc"

    def __init__(self, path: Path | None = None) -> None:
        found = path or find_nvcc()
        if found is None:
            raise MissingCapabilityError(
                Problem(
                    "nvcc is not found",
                    "Install a CUDA toolkit and put nvcc on PATH, let FA4GEN_NVCC or CUDA_HOME "
                    "name it, or use --compiler nvrtc, which needs none.",
                )
            )
        self.path = found

    @cached_property
    def version(self) -> str:
        """Full version: "13.0.88"."""
        done = self._run(["--version"], cwd=None)
        match = _VERSION.search(done.stdout)
        if done.returncode or not match:
            said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
            raise MissingCapabilityError(
                Problem(
                    f"{self.path} --version does not print its version: {said[-1]}",
                    "Check the CUDA toolkit's installation.",
                )
            )
        return match[1]

    def options(self, unit: Unit) -> tuple[str, ...]:
        """Options for PTX and cubin of the exact architecture, with ptxas's report in the log."""
        target = f"-gencode=arch={unit.virtual_arch},code={unit.arch}"
        more = ("-lineinfo",) if unit.line_info else ()
        return (target, "-std=c++17", "-Xptxas=-v", *more)

    def build(self, unit: Unit) -> Built:
        """Compile to PTX and cubin; CompileError with places, MissingCapabilityError."""
        with TemporaryDirectory(prefix="fa4gen-nvcc-") as folder:
            work = Path(folder)
            log = self._compile(unit, work)
            ptx = (work / f"{unit.name}.ptx").read_text()
            return Built(ptx, (work / f"{unit.name}.cubin").read_bytes(), log)

    def build_ptx(self, unit: Unit) -> str:
        """Compile to PTX alone: works on units with PTX that ptxas refuses."""
        with TemporaryDirectory(prefix="fa4gen-nvcc-") as folder:
            work = Path(folder)
            ptx = work / f"{unit.name}.ptx"
            try:
                self._compile(unit, work)
            except RefusedError:
                if not ptx.exists():
                    raise
            return ptx.read_text()

    def _compile(self, unit: Unit, work: Path) -> str:
        """Leave cubin and PTX in ``work`` and return the log."""
        source = f"{unit.name}.cu"
        for name, text in {**unit.headers, source: unit.source}.items():
            (work / name).write_text(text, encoding="utf-8")
        # --keep leaves the PTX of this run next to the cubin.
        output = ("-cubin", "--keep", "-o", f"{unit.name}.cubin")
        done = self._run([*self.options(unit), *output, source], cwd=work)
        log = (done.stdout + done.stderr).strip("\n ")
        if done.returncode == 0:
            return log
        if "Unsupported gpu architecture" in log:
            raise unsupported_arch(f"nvcc {self.version}", unit.arch)
        if _HOST_COMPILER_MISSING.search(log):
            raise MissingCapabilityError(
                Problem(
                    f"nvcc finds no host compiler: {log.splitlines()[-1]}",
                    "Install g++, or use --compiler nvrtc, which needs none.",
                )
            )
        raise compile_error(unit, log)

    def _run(self, args: Sequence[str], cwd: Path | None) -> subprocess.CompletedProcess[str]:
        # Options from the environment would change the result unnoticed by the cache.
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
        }
        if cwd is not None:
            environment["TMPDIR"] = str(cwd)  # removed with it, however nvcc ends
        try:
            return subprocess.run(
                [str(self.path), *args],
                cwd=cwd,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise MissingCapabilityError(
                Problem(f"{self.path} does not start: {error.strerror}", "Check FA4GEN_NVCC.")
            ) from error
