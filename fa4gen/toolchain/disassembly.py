"""Machine code with its source lines, by NVIDIA's nvdisasm."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from fa4gen.errors import MissingCapabilityError, Problem

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_LABEL = re.compile(r"(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """An instruction of a kernel; branch targets are addresses."""

    address: int
    text: str
    line: int
    """The innermost line of N.cu that it was inlined from; 0 where the cubin names none."""


def find_nvdisasm() -> Path:
    """Return the nvdisasm of PATH, pip's packages, conda or CUDA_HOME; MissingCapabilityError."""
    found = shutil.which("nvdisasm") or _installed()
    if found is None:
        lines = ": cuobjdump, which is there, shows no source lines"
        raise MissingCapabilityError(
            Problem(
                f"nvdisasm is not found{lines if shutil.which('cuobjdump') else ''}",
                "Install it with: pip install nvidia-cuda-nvdisasm  (or put the bin folder of a "
                "CUDA toolkit on PATH).",
            )
        )
    return Path(found)


def _installed() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:  # macOS, or an older one
        return None
    path: str | None = find_nvidia_binary_utility("nvdisasm")
    return path


def disassemble(tool: Path, cubin: bytes, source: str) -> list[Instruction]:
    """Return the instructions of ``cubin``, built of the file ``source`` with line information.

    Raises MissingCapabilityError where the tool does not know the cubin's architecture.
    """
    with TemporaryDirectory(prefix="fa4gen-nvdisasm-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [str(tool), "--print-code", "--print-line-info-inline", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        raise MissingCapabilityError(
            Problem(
                f"{tool} cannot read the kernel: {said[-1]}",
                "Take a newer one: pip install --upgrade nvidia-cuda-nvdisasm.",
            )
        )
    return read_disassembly(done.stdout, source)


def read_disassembly(text: str, source: str) -> list[Instruction]:
    """Return the instructions in nvdisasm's output, with their lines of the file ``source``.

    Ahead of instructions stands the chain of calls that they were inlined through, innermost first.
    """
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []  # labels of the next instruction
    line, in_chain = 0, False
    for row in text.splitlines():
        if place := _PLACE.match(row):
            line = line if in_chain else 0
            in_chain = True
            if not line and PurePath(place[1]).name == source:
                line = int(place[2])
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif instruction := _INSTRUCTION.match(row):
            in_chain = False
            address = int(instruction[1], 16)
            labels |= dict.fromkeys(waiting, address)
            waiting.clear()
            found.append(Instruction(address, instruction[2], line))

    def address_of(target: re.Match[str]) -> str:
        return f"{labels[target[1]]:#07x}" if target[1] in labels else target[0]

    return [Instruction(i.address, _TARGET.sub(address_of, i.text), i.line) for i in found]
