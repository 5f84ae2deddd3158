"""One process of the recorded program: its memory, its modules, its launches."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import EmulatorError, OutOfMemoryError, UnsupportedError
from fa4gen.emulator.program import Program
from fa4gen.emulator.recorder.contents import global_variables, initial_bytes, kernels
from fa4gen.emulator.recorder.devices import DRIVER_VERSION, Device
from fa4gen.emulator.recorder.driver_maps import encode
from fa4gen.emulator.recorder.folders import Launch
from fa4gen.emulator.recorder.images import ImageError, find_ptx
from fa4gen.emulator.recorder.messages import Reader, Request, Result, numbers, text, wide
from fa4gen.emulator.recorder.snapshots import Snapshot, take
from fa4gen.emulator.report import Report
from fa4gen.emulator.state.budget import Budget, default_budget, shown_bytes
from fa4gen.emulator.state.decoded_map import Corners
from fa4gen.emulator.state.map_bits import MapError
from fa4gen.emulator.state.memory import FIXED_BASE

_RESULTS: Final = {
    "out-of-bounds": Result.ILLEGAL_ADDRESS,
    "misaligned": Result.MISALIGNED_ADDRESS,
    "illegal-instruction": Result.ILLEGAL_INSTRUCTION,
    "deadlock": Result.LAUNCH_TIMEOUT,
    "step-limit": Result.LAUNCH_TIMEOUT,
}
_MORE: Final = "free memory of the device, or allow more with --max-memory"

Execute = Callable[[Program, Launch], Report | None]


@dataclass(slots=True)
class _Module:
    program: Program
    ptx: str
    addresses: dict[str, int]


@dataclass(slots=True)
class Session:
    """Answers the requests of a process. ``execute`` records a launch, and runs it or not."""

    device: Device
    memory_file: Path
    memory_size: int
    max_memory: int | None
    """Bytes that this process may use; None for half of what is free when a launch begins."""
    supplied: tuple[Path, ...]
    execute: Execute
    say: Callable[[str], None]
    next_number: Callable[[], int]
    _modules: list[_Module] = field(default_factory=list)
    _noted: set[str] = field(default_factory=set)
    _window: mmap.mmap | None = None
    _written: tuple[tuple[int, int], ...] = ()
    """Address ranges that the launch before changed, if the next one may start before its end."""

    def answer(self, kind: int, data: bytes) -> bytes:
        """The answer to a request: a result of the driver's, and the data that belong to it."""
        reader = Reader(data)
        handlers = {
            Request.HELLO: self._hello,
            Request.MODULE: self._load,
            Request.PLACE: self._place,
            Request.LAUNCH: self._launch,
            Request.ENCODE: self._encode,
            Request.NOTE: self._note,
        }
        return handlers[Request(kind)](reader)

    def close(self) -> None:
        """Forget the memory."""
        self._window = None  # arrays of findings may still look at it
        self.memory_file.unlink(missing_ok=True)

    def _hello(self, reader: Reader) -> bytes:
        try:
            with self.memory_file.open("w+b") as file:
                file.truncate(self.memory_size)
                self._window = mmap.mmap(file.fileno(), self.memory_size)
        except (OSError, OverflowError) as error:
            size, reason = shown_bytes(self.memory_size), getattr(error, "strerror", "") or error
            self.say(f"device memory of {size} cannot be had: {reason}; take less with --memory")
            return numbers(Result.OUT_OF_MEMORY)
        attributes = sorted(self.device.attributes.items())
        return b"".join(
            (
                numbers(Result.SUCCESS),
                text(str(self.memory_file)),
                wide(FIXED_BASE, self.memory_size),
                numbers(DRIVER_VERSION),
                text(self.device.name),
                numbers(len(attributes), *(number for pair in attributes for number in pair)),
            )
        )

    def _load(self, reader: Reader) -> bytes:
        try:
            ptx = find_ptx(reader.data, self.supplied, self.device.sm)
        except ImageError as error:
            self.say(f"module {len(self._modules)}: {error}")
            return numbers(Result.NO_BINARY_FOR_GPU) + text(str(error))
        try:
            program = Program(ptx)
        except EmulatorError as error:
            self.say(f"module {len(self._modules)}: {error}")
            return numbers(Result.INVALID_PTX) + text(str(error))
        if program.sm > self.device.sm:
            message = f"PTX for {program.target} does not run on sm_{self.device.sm}"
            self.say(f"module {len(self._modules)}: {message}; see --arch")
            return numbers(Result.NO_BINARY_FOR_GPU) + text(message)
        self._modules.append(_Module(program, ptx, {}))
        found = kernels(program.module)
        answer = numbers(Result.SUCCESS, len(self._modules) - 1, len(found))
        for one in found:
            answer += text(one.name) + numbers(len(one.parameters))
            answer += numbers(*(number for pair in one.parameters for number in pair))
            answer += numbers(one.static_shared, one.local, one.max_threads, one.registers)
            answer += numbers(*one.cluster)
        variables = global_variables(program.module)
        answer += numbers(len(variables))
        for variable in variables:
            answer += text(variable.name) + wide(variable.size)
        return answer

    def _place(self, reader: Reader) -> bytes:
        module = self._modules[reader.number()]
        variables = global_variables(module.program.module)
        addresses = reader.numbers(len(variables), "Q")
        module.addresses = {
            one.name: address for one, address in zip(variables, addresses, strict=True)
        }
        for one in variables:
            raw = initial_bytes(one, module.addresses)
            memory = self._bytes(module.addresses[one.name], one.size)
            memory[...] = np.frombuffer(raw, np.uint8)
        return numbers(Result.SUCCESS)

    def _encode(self, reader: Reader) -> bytes:
        data_type, rank, im2col = reader.numbers(3)
        address = reader.number("Q")
        dims, strides = reader.numbers(rank, "Q"), reader.numbers(rank - 1, "Q")
        corners = None
        if im2col:
            corners = Corners(reader.numbers(rank - 2, "i"), reader.numbers(rank - 2, "i"))
        box, steps = reader.numbers(2 if im2col else rank), reader.numbers(rank)
        interleave, swizzle, l2, fill = reader.numbers(4)
        try:
            raw = encode(
                data_type=data_type,
                address=address,
                dims=dims,
                strides=strides,
                box=box,
                steps=steps,
                interleave=interleave,
                swizzle=swizzle,
                l2=l2,
                fill=fill,
                sm=self.device.sm,
                corners=corners,
            )
        except MapError as error:
            self.say(f"cuTensorMapEncode{'Im2col' if im2col else 'Tiled'}: {error}")
            return numbers(Result.INVALID_VALUE)
        return numbers(Result.SUCCESS) + raw

    def _launch(self, reader: Reader) -> bytes:
        module = self._modules[reader.number()]
        entry = reader.text()
        grid, block, cluster = (_triple(reader) for _ in range(3))
        shared, programmatic, count = reader.numbers(3)
        parameters = tuple(reader.raw() for _ in range(count))
        blocks = reader.numbers(2 * reader.number(), "Q")
        taken = set(module.addresses.values())
        budget = self._budget()
        used = {one.name: one for one in global_variables(module.program.module)}
        try:
            memory = tuple(
                self._snapshot(address, size, f"memory_{address - FIXED_BASE:x}", budget)
                for address, size in zip(blocks[::2], blocks[1::2], strict=True)
                if address not in taken
            )
            variables = {
                name: self._snapshot(address, used[name].size, name, budget)
                for name, address in module.addresses.items()
            }
        except (MemoryError, OutOfMemoryError) as error:
            self.say(f"a launch of {entry} needs a copy of all memory: {error}; {_MORE}")
            return numbers(Result.OUT_OF_MEMORY)
        launch = Launch(
            self.next_number(),
            module.ptx,
            entry,
            grid,
            block,
            cluster,
            shared,
            bool(programmatic),
            parameters,
            tuple(one.memory for one in memory),
            {name: one.memory for name, one in variables.items()},
            self._written if programmatic else (),
        )
        self._written = ()
        try:
            report = self.execute(module.program, launch)
        except UnsupportedError as error:
            self.say(f"launch {launch.number}, {entry}: {error}")
            return numbers(Result.NOT_SUPPORTED)
        except (MemoryError, OutOfMemoryError) as error:
            self.say(f"launch {launch.number}, {entry}: {error}; {_MORE}")
            return numbers(Result.OUT_OF_MEMORY)
        except EmulatorError as error:
            self.say(f"launch {launch.number}, {entry}: {error}")
            return numbers(Result.INVALID_VALUE)
        if report is not None and any(one.kind == "memory-limit" for one in report.findings):
            return numbers(Result.OUT_OF_MEMORY)
        written = tuple(span for one in memory for span in one.put_back())
        if written and module.program.lets_dependents_start(entry):
            self._written = written
        for variable in variables.values():
            variable.put_back()
        return numbers(Result.SUCCESS, _later(report, launch))

    def _note(self, reader: Reader) -> bytes:
        name = reader.text()
        if name not in self._noted:
            self._noted.add(name)
            self.say(f"{name} is not provided: the program got CUDA_ERROR_NOT_SUPPORTED")
        return numbers(Result.SUCCESS)

    def _bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        if self._window is None:
            raise EmulatorError("the stand-in did not say hello")
        return np.frombuffer(self._window, np.uint8, size, address - FIXED_BASE)

    def _budget(self) -> Budget:
        """The memory that this process may use; shared pages that it has read do not count."""
        if self._window is not None:
            self._window.madvise(mmap.MADV_DONTNEED)  # they stay in the file
        return default_budget() if self.max_memory is None else Budget(self.max_memory)

    def _snapshot(self, address: int, size: int, name: str, budget: Budget) -> Snapshot:
        return take(self._bytes(address, size), address, name, budget)


def _triple(reader: Reader) -> tuple[int, int, int]:
    x, y, z = reader.numbers(3)
    return x, y, z


def _later(report: Report | None, launch: Launch) -> Result:
    """The result of the next call that waits for the kernel: an error only if it was cut short."""
    if report is None:
        return Result.SUCCESS
    # clusters that clusterlaunchcontrol cancelled are not to run
    cancelled = report.coverage.cancelled * prod(launch.cluster)
    if report.ctas + cancelled == prod(launch.grid):
        return Result.SUCCESS
    kinds = [finding.kind for finding in report.findings]
    return next((_RESULTS[kind] for kind in kinds if kind in _RESULTS), Result.LAUNCH_FAILED)


def complain(message: str) -> None:
    """Print a message for the user of the program."""
    print(f"fa4gen record: {message}", file=sys.stderr, flush=True)
