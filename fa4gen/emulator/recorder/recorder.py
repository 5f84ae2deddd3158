"""Records the launches of host programs that load the stand-in, and runs them one by one."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fa4gen.emulator.program import Program
from fa4gen.emulator.recorder.build import DRIVER, build_driver
from fa4gen.emulator.recorder.devices import DEVICES
from fa4gen.emulator.recorder.folders import Folders, Launch
from fa4gen.emulator.recorder.messages import ANSWER_HEAD, HEAD, Result, numbers
from fa4gen.emulator.recorder.session import Session, complain
from fa4gen.emulator.report import Report
from fa4gen.emulator.scheduling.limits import Limits

VARIABLE = "FA4GEN_RECORDER"
"""Environment variable with the socket's path, for the stand-in."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a recording.

    arch       the device to stand for: sm_90a, sm_100a or sm_103a
    ptx        files of PTX, or folders that will hold some, for images with machine code only
    execute    whether launches are run when the program launches them, so that it has results
    record     whether each is written as a folder
    checks, seed, schedule  as for Program.launch
    memory     bytes of device memory
    max_memory  bytes that this process may use; None for half of what is free at each launch
    """

    arch: str = "sm_90a"
    ptx: tuple[Path, ...] = ()
    execute: bool = True
    record: bool = True
    checks: bool = True
    seed: int = 0
    schedule: str = "uniform"
    memory: int = 16 << 30
    max_memory: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A launch, where it was written, and the report if it was run."""

    launch: Launch
    folder: Path | None
    report: Report | None


@dataclass(slots=True)
class Recorder:
    """The launches recorded so far, in their order."""

    folders: Folders
    options: Options
    library: Path
    """The folder with the stand-in for libcuda.so.1."""
    scratch: Path
    say: Callable[[str], None] = complain
    on_launch: Callable[[Recorded], None] = lambda recorded: None
    launches: list[Recorded] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)
    _sessions: int = 0
    _numbers: int = 0

    @property
    def address(self) -> Path:
        """The socket that the stand-in connects to."""
        return self.scratch / "socket"

    def environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment for a program that is to find the stand-in."""
        found = dict(base)
        paths = [str(self.library), *filter(None, [base.get("LD_LIBRARY_PATH")])]
        preloaded = [str(self.library / DRIVER), *filter(None, [base.get("LD_PRELOAD")])]
        found["LD_LIBRARY_PATH"] = ":".join(paths)
        found["LD_PRELOAD"] = ":".join(preloaded)
        found[VARIABLE] = str(self.address)
        return found

    def serve(self, connection: socket.socket) -> None:
        """Answer one process until it ends."""
        with self._lock:
            self._sessions += 1
            file = self.scratch / f"memory-{self._sessions}"
        session = Session(
            DEVICES[self.options.arch],
            file,
            self.options.memory,
            self.options.max_memory,
            self.options.ptx,
            self._execute,
            self.say,
            self._number,
        )
        with connection:
            while (head := _receive(connection, HEAD.size)) is not None:
                size, kind = HEAD.unpack(head)
                data = _receive(connection, size)
                if data is None:
                    break
                try:
                    answer = session.answer(kind, data)
                except Exception as error:  # the program must not wait for ever
                    self.say(f"a request could not be answered: {type(error).__name__}: {error}")
                    answer = numbers(Result.UNKNOWN)
                try:
                    connection.sendall(ANSWER_HEAD.pack(len(answer)) + answer)
                except OSError:
                    break
        session.close()

    def _number(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _execute(self, program: Program, launch: Launch) -> Report | None:
        folder = self.folders.write(launch) if self.options.record else None
        report = None
        if self.options.execute:
            report = program.launch(
                launch.entry,
                grid=launch.grid,
                block=launch.block,
                cluster=launch.cluster,
                dynamic_shared=launch.dynamic_shared,
                args=launch.parameters,
                memory=launch.memory,
                variables=launch.variables,
                pending_writes=[one.array[a:b] for one, a, b in launch.pending_parts()],
                seed=self.options.seed,
                schedule=self.options.schedule,
                checks=self.options.checks,
                limits=Limits(memory=self.options.max_memory),
            )
        # memory of the program is not kept alive with the launch
        kept = Recorded(replace(launch, memory=(), variables={}, ptx=""), folder, report)
        with self._lock:
            self.launches.append(kept)
        self.on_launch(kept)
        return report


@contextmanager
def recording(
    root: Path,
    cache: Path,
    options: Options | None = None,
    *,
    say: Callable[[str], None] = complain,
    on_launch: Callable[[Recorded], None] = lambda recorded: None,
) -> Iterator[Recorder]:
    """Record the programs that are run with ``environment()`` into folders below ``root``.

    ``cache`` is where the compiled stand-in is kept. ``on_launch`` is called after each launch.
    Raises NoCompilerError on a machine without a C compiler.
    """
    options = options or Options()
    library = build_driver(cache)
    with TemporaryDirectory(prefix="fa4gen-", ignore_cleanup_errors=True) as scratch:
        recorder = Recorder(Folders(root), options, library, Path(scratch), say, on_launch)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(recorder.address))
        listener.listen()
        ended = threading.Event()
        accepting = threading.Thread(target=_accept, args=(listener, recorder, ended), daemon=True)
        accepting.start()
        try:
            yield recorder
        finally:
            ended.set()
            with socket.socket(socket.AF_UNIX) as last:  # wakes the thread that accepts
                last.connect(str(recorder.address))
            accepting.join()
            listener.close()


def _accept(listener: socket.socket, recorder: Recorder, ended: threading.Event) -> None:
    while True:
        connection, _ = listener.accept()
        if ended.is_set():
            connection.close()
            return
        threading.Thread(target=recorder.serve, args=(connection,), daemon=True).start()


def _receive(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = connection.recv(min(size - len(parts), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
