"""Recorded launches of other projects' host code, emulated on the recorded arrays."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import yaml
from numpy.typing import NDArray

from fa4gen.emulator import Bytes, Memory, Program, Report

_POINTER_BYTES = 8
_POOL_BYTES = 64 << 20


@dataclass(frozen=True)
class Placed:
    """An array and the address that the host code knew it by."""

    address: int
    array: NDArray[Any]


@dataclass(frozen=True)
class Launch:
    """A kernel and its raw parameters; sizes as CUDA has them."""

    kernel: str
    ptx: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    dynamic_shared: int
    parameters: Sequence[bytes]


@dataclass(frozen=True)
class Recording:
    """The launches of a program, in order, with their arrays, which a run does not change."""

    launches: Sequence[Launch]
    arrays: Mapping[str, Placed]
    fixed: bool = False
    """Whether the arrays stay at their addresses, so that the parameters are as they are."""

    def values(self, name: str) -> NDArray[np.float64]:
        """An array as the program filled it."""
        return self.arrays[name].array.astype(np.float64)

    def run(self, *, seed: int, schedule: str) -> tuple[dict[str, NDArray[Any]], list[Report]]:
        """Emulate all launches. Returns the arrays as they are afterwards, and the reports."""
        memory = {name: Placed(one.address, one.array.copy()) for name, one in self.arrays.items()}
        reports = [
            _program(launch.ptx).launch(
                launch.kernel,
                grid=launch.grid,
                block=launch.block,
                cluster=launch.cluster,
                dynamic_shared=launch.dynamic_shared,
                args=self._arguments(launch, memory.values()),
                memory=self._memory(memory.values()),
                seed=seed,
                schedule=schedule,
            )
            for launch in self.launches
        ]
        return {name: one.array for name, one in memory.items()}, reports

    def _arguments(self, launch: Launch, memory: Iterable[Placed]) -> list[Any]:
        if self.fixed:
            return list(launch.parameters)
        return [relocated(raw, memory) for raw in launch.parameters]

    def _memory(self, memory: Iterable[Placed]) -> list[Memory]:
        if not self.fixed:
            return []
        return [Memory(one.array, address=one.address) for one in memory]


def relocated(raw: bytes, arrays: Iterable[Placed]) -> Bytes:
    """A parameter whose words that are addresses inside of ``arrays`` follow the arrays.

    The address in a tensor map is its first word, so tensor maps need nothing else.
    """
    pointers: dict[int, Any] = {}
    for offset in range(0, len(raw) - _POINTER_BYTES + 1, 4):
        address = int.from_bytes(raw[offset : offset + _POINTER_BYTES], "little")
        for one in arrays:
            if one.address <= address < one.address + one.array.nbytes:
                pointers[offset] = (one.array, address - one.address)
    return Bytes(raw, pointers=pointers)


@cache
def _program(ptx: str) -> Program:
    return Program(ptx)


def load(path: Path) -> Recording:
    """Read what ``cute/record.py`` wrote."""
    content = pickle.loads(path.read_bytes())
    return Recording(
        [Launch(**launch) for launch in content["launches"]],
        {
            name: Placed(address, bits.view(getattr(ml_dtypes, dtype, dtype)))
            for name, (address, dtype, bits) in content["arrays"].items()
        },
    )


def load_folder(folder: Path) -> Recording:
    """Read what ``fa4gen record`` wrote of one launch whose parameters are all raw bytes.

    Arrays are bytes, called after their addresses, where they stay: an address need not be inside
    of the array that it leads to. Those of 64 MiB and more are left: pools of which a kernel of
    these tests uses nothing.
    """
    described = yaml.safe_load((folder / "launch.yaml").read_text())
    parameters = [bytes.fromhex(one["bytes"].replace(" ", "")) for one in described["arguments"]]
    arrays = {}
    for name, one in described["arrays"].items():
        if "array" in one:
            array = np.load(folder / one["array"], mmap_mode="r")
        else:
            array = np.zeros(one["shape"], one["dtype"])
        if array.nbytes < _POOL_BYTES:
            arrays[name] = Placed(one["address"], np.array(array))
    launch = Launch(
        described["entry"],
        (folder / "kernel.ptx").read_text(),
        tuple(described["grid"]),
        tuple(described["block"]),
        tuple(described["cluster"]) if "cluster" in described else None,
        described.get("dynamic_shared", 0),
        parameters,
    )
    return Recording([launch], arrays, fixed=True)
