"""Launches as folders that ``fa4gen emulate`` runs: launch.yaml, kernel.ptx, memory as .npy."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from fa4gen.emulator.state.relocations import Memory

_ROW: Final = 100


@dataclass(frozen=True, slots=True)
class Launch:
    """A recorded launch: sizes in CTAs and threads, parameters as bytes."""

    number: int
    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_shared: int
    programmatic: bool
    parameters: tuple[bytes, ...]
    memory: tuple[Memory, ...]
    variables: Mapping[str, Memory]
    pending: tuple[tuple[int, int], ...] = ()
    """For a programmatic dependent launch: half-open address ranges that the previous launch
    wrote."""

    def pending_parts(self) -> Iterator[tuple[Memory, int, int]]:
        """Yield the parts of memory that are ``pending``: first and last byte, half open."""
        for start, stop in self.pending:
            for one in self.memory:
                first = start - (one.address or 0)
                if 0 <= first < one.array.nbytes:
                    yield one, first, min(stop - (one.address or 0), one.array.nbytes)

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"launch-{self.number:04d}-{re.sub(r'[^A-Za-z0-9_.-]', '_', self.entry)[:60]}"


@dataclass(slots=True)
class Folders:
    """Writes launches below ``root``; parts that several share are one file on the disk."""

    root: Path
    _known: dict[str, Path] = field(default_factory=dict)

    def write(self, launch: Launch) -> Path:
        """Write a launch with the memory as it is now; returns its folder."""
        folder = self.root / launch.folder
        folder.mkdir(parents=True, exist_ok=True)
        self._share(folder / "kernel.ptx", launch.ptx.encode(), None)
        arrays = {one.name: self._array(folder, one) for one in launch.memory}
        document: dict[str, Any] = {
            "entry": launch.entry,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "cluster": list(launch.cluster),
            "dynamic_shared": launch.dynamic_shared,
        }
        if launch.variables:
            document["variables"] = {
                name: self._array(folder, one) for name, one in launch.variables.items()
            }
        lines = [f"# launch {launch.number}: fa4gen emulate kernel.ptx --launch launch.yaml"]
        if launch.programmatic:
            lines.append("# a programmatic dependent launch: see pending_writes, if there are any")
        pending = [f"{one.name}[{a}:{b}]" for one, a, b in launch.pending_parts()]
        if pending:
            document["pending_writes"] = pending
        lines.append(_yaml(document) + "arguments:" + ("" if launch.parameters else " []"))
        for raw in launch.parameters:
            lines += _parameter(raw, launch.memory)
        lines.append(_yaml({"arrays": arrays}) if arrays else "")
        (folder / "launch.yaml").write_text("\n".join(lines), encoding="utf-8")
        return folder

    def _array(self, folder: Path, memory: Memory) -> dict[str, Any]:
        described: dict[str, Any] = {"address": memory.address}
        if memory.array.any():
            name = re.sub(r"[^\w.-]", "_", memory.name) + ".npy"
            self._share(folder / name, memory.array.tobytes(), memory.array)
            return {"array": name} | described
        kind = memory.array.dtype.name
        return {"make": "zeros", "shape": list(memory.array.shape), "dtype": kind} | described

    def _share(self, path: Path, content: bytes, array: NDArray[Any] | None) -> None:
        """Write a file, or link to one with the same content."""
        key = hashlib.sha256(content).hexdigest()
        path.unlink(missing_ok=True)
        if key in self._known:
            try:
                path.hardlink_to(self._known[key])
            except OSError:
                shutil.copyfile(self._known[key], path)
            return
        if array is None:
            path.write_bytes(content)
        else:
            np.save(path, array)
        self._known[key] = path


def _yaml(document: Mapping[str, Any]) -> str:
    written = yaml.safe_dump(dict(document), sort_keys=False, width=_ROW, default_flow_style=None)
    return re.sub(r"\baddress: (\d+)", lambda found: f"address: {int(found[1]):#x}", written)


def _parameter(raw: bytes, memory: Sequence[Memory]) -> list[str]:
    """An argument, and which of its words look like addresses."""
    lines = []
    for offset in range(0, len(raw) - 7, 8):
        address = int.from_bytes(raw[offset : offset + 8], "little")
        for one in memory:
            start = one.address or 0
            if start <= address < start + one.array.nbytes:
                lines.append(f"# at {offset}: {one.name} + {address - start}")
    words = [raw[at : at + 8].hex() for at in range(0, len(raw), 8)]
    rows = [" ".join(words[at : at + 5]) for at in range(0, len(words), 5)]
    return [*lines, "- bytes: '" + "\n    ".join(rows) + "'"]
