"""One command line under one fault: its status, what it printed, what it left."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl: orphans become children of this process."""
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}
STREAMS = (
    *("full stdout", "full stderr", "closed stdout", "closed stderr", "closed stdin", "pipe"),
    *("error pipe", "file size"),
)
"""Faults of what a process reads from and prints to."""
OTHER_FAULTS = (
    *("kill", "kill", "term", "term", "int", "int", "full disk", "full disk", "read-only"),
    "no folder",
)
PATIENCE_S = 8.0
"""After which a line that is not quick is interrupted."""
LIMIT_S = 90.0
"""After which a line hangs that is quick, or was interrupted."""
ORPHANS_S = 8.0
"""That processes have to end after the one that started them."""
MEMORY = 12 * 2**30
"""Address space of a process: what grows without a limit fails here."""
KEPT = ("PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
"""Variables that lines have from this process, beside PYTHONPATH: where packages and GPUs are."""
SITE = '''\
"""Reports every attempt to write outside of some folders, for benchmarks/soak.py."""
import os, sys
_INSIDE, _LOG = os.environ["SOAK_FOLDERS"].split(os.pathsep), os.environ["SOAK_LOG"]
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = {"os.remove": 1, "os.rename": 2, "os.mkdir": 1, "os.rmdir": 1, "os.link": 2,
           "os.symlink": 2, "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "shutil.rmtree": 1}
def _hook(event, args):
    if event == "open":
        paths = [args[0]] if isinstance(args[2], int) and args[2] & _WRITING else []
    elif event in _EVENTS:
        paths = args[: _EVENTS[event]]
    else:
        return
    for path in paths:
        if not isinstance(path, (str, bytes)):
            continue
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (OSError, ValueError):
            continue
        if not real.startswith((*_INSIDE, "/dev/", "/proc/self/")):
            log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(log, f"{event} {real}\\n".encode(errors="replace"))
            os.close(log)
def _guarded(event, args, busy=[False]):
    if busy[0]:
        return
    busy[0] = True
    try:
        _hook(event, args)
    except Exception:
        pass
    finally:
        busy[0] = False
sys.addaudithook(_guarded)
'''


@dataclass(frozen=True)
class Run:
    """What came of a line."""

    status: int
    """Exit status; the signal's number below 0 where one ended it."""
    out: str
    err: str
    signals: tuple[str, ...]
    """Signals that were sent, in order."""
    hung: bool
    left: tuple[str, ...]
    """Processes that were still there long after it, which were killed then."""
    seconds: float


@dataclass
class Place:
    """Folders of one soak."""

    base: Path
    cache: Path
    site: Path = field(init=False)

    def __post_init__(self) -> None:
        self.site = self.base / "site"
        self.site.mkdir(parents=True)
        (self.site / "sitecustomize.py").write_text(SITE)
        self.cache.mkdir(parents=True, exist_ok=True)
        for name in ("home", "tmp"):
            (self.base / name).mkdir()

    @property
    def log(self) -> Path:
        """Attempts to write outside."""
        return self.base / "outside.log"

    def environment(self) -> dict[str, str]:
        """Return the environment of every line."""
        paths = (str(self.site), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        return {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.base / "home"),
            "TMPDIR": str(self.base / "tmp"),
            "FA4GEN_CACHE_DIR": str(self.cache),
            "SOAK_FOLDERS": f"{self.base}{os.sep}{os.pathsep}{self.cache}",
            "SOAK_LOG": str(self.log),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }


def adopt_orphans(adopt: bool = True) -> None:
    """Make this process the parent of all that its children leave behind, or no longer."""
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, int(adopt), 0, 0, 0)


def run_line(
    args: Sequence[str],
    folder: Path,
    place: Place,
    fault: str,
    rng: random.Random,
    *,
    quick: bool,
    forked: bool,
) -> Run:
    """Run ``fa4gen`` with ``args`` in ``folder`` under ``fault``.

    ``forked``: in a copy of this process, which has fa4gen's modules already; else in a new Python.
    """
    start = time.monotonic()
    others = _children()
    streams = _Streams(place.base, fault)
    limits = rng.choice((0, 1, 100, 4096, 20_000)) if fault == "file size" else None
    environment = place.environment()
    if forked:
        child = _fork(args, folder, environment, streams, limits)
    else:
        child = _start(args, folder, environment, streams, limits)
    streams.close_theirs()
    signals, hung, status = _wait(child, fault, rng, quick, streams, start)
    seconds = time.monotonic() - start
    streams.close()
    left = _end_orphans(others)
    out, err = streams.read()
    return Run(status, out, err, signals, hung, left, round(seconds, 2))


class _Streams:
    """Standard streams of a line, some of them closed, full or read only in part."""

    def __init__(self, base: Path, fault: str) -> None:
        self.files = [base / "stdin", base / "stdout", base / "stderr"]
        self.closed = {"closed stdin": 0, "closed stdout": 1, "closed stderr": 2}.get(fault)
        full = {"full stdout": 1, "full stderr": 2}.get(fault)
        piped = {"pipe": 1, "error pipe": 2}.get(fault)
        self.theirs: list[int] = []
        self.reader: int | None = None
        for number, path in enumerate(self.files):
            path.unlink(missing_ok=True)
            if number == 0:
                path.touch()
            if number == piped:
                self.reader, end = os.pipe()
            elif number == full:
                end = os.open("/dev/full", os.O_WRONLY)
            else:
                mode = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                end = os.open(path, mode, 0o600)
            self.theirs.append(end)

    def put_in_place(self) -> None:
        """Make them 0, 1 and 2: in the child."""
        for number, end in enumerate(self.theirs):
            os.dup2(end, number)
        os.closerange(3, 256)
        if self.closed is not None:
            os.close(self.closed)

    def close_theirs(self) -> None:
        """Close the child's ends in this process."""
        for end in self.theirs:
            os.close(end)

    def read_a_little(self, rng: random.Random) -> None:
        """Read some of a pipe that something was written to, then close it."""
        if self.reader is not None and select.select([self.reader], [], [], 0)[0]:
            os.read(self.reader, rng.choice((1, 100, 5000)))
            self.close()

    def close(self) -> None:
        """Close the reader's end of a pipe."""
        if self.reader is not None:
            os.close(self.reader)
            self.reader = None

    def read(self) -> tuple[str, str]:
        """Return what was written to stdout and stderr, as far as it went to a file."""
        texts = []
        for path in self.files[1:]:
            texts.append(path.read_bytes().decode(errors="replace") if path.exists() else "")
        return texts[0], texts[1]


def _prepare(folder: Path, streams: _Streams, file_size: int | None) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    streams.put_in_place()
    with suppress(OSError):
        os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))


def _start(
    args: Sequence[str], folder: Path, environment: dict[str, str], streams: _Streams,
    file_size: int | None,
) -> int:  # fmt: skip
    return _forked(
        lambda: os.execve(sys.executable, [sys.executable, "-m", "fa4gen", *args], environment),
        folder,
        streams,
        file_size,
    )


def _fork(
    args: Sequence[str], folder: Path, environment: dict[str, str], streams: _Streams,
    file_size: int | None,
) -> int:  # fmt: skip
    def call() -> None:
        import atexit
        import tempfile
        import traceback

        atexit._clear()  # handlers of this process
        sys.dont_write_bytecode = True
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        exec(SITE, {})
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream: Any = None  # as Python has it for a closed one
            with suppress(OSError):
                stream = open(number, "r" if number == 0 else "w", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        status = 1
        try:
            from fa4gen.cli.main import main

            status = main(args)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)

    return _forked(call, folder, streams, file_size)


def _forked(call: object, folder: Path, streams: _Streams, file_size: int | None) -> int:
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # none before the child is prepared
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return child
    try:
        _prepare(folder, streams, file_size)
        call()  # type: ignore[operator]
    finally:
        os._exit(99)


def _wait(
    child: int, fault: str, rng: random.Random, quick: bool, streams: _Streams, start: float
) -> tuple[tuple[str, ...], bool, int]:
    """Wait for the child and send it the signals of the fault, and those that end a long line."""
    sent: list[str] = []
    due = [(min(6.0, rng.expovariate(2.0)), fault)] if fault in SIGNALS else []
    if rng.random() < 0.1:
        due = due * 2
    if not quick:
        due.append((PATIENCE_S, "int"))
    ends_at = LIMIT_S if quick else PATIENCE_S + LIMIT_S
    if rng.random() < 0.5:
        streams.close()  # before anything is written, or when something is
    while True:
        streams.read_a_little(rng)
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            return tuple(sent), False, os.waitstatus_to_exitcode(code)
        elapsed = time.monotonic() - start
        if due and elapsed >= due[0][0]:
            _, name = due.pop(0)
            sent.append(name)
            to_group = name == "int" and rng.random() < 0.5  # as Ctrl-C in a terminal does
            with suppress(ProcessLookupError):
                (os.killpg if to_group else os.kill)(child, SIGNALS[name])
        if elapsed > ends_at:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, code = os.waitpid(child, 0)
            return tuple(sent), True, os.waitstatus_to_exitcode(code)
        time.sleep(0.002 if elapsed < 0.5 else 0.02)


def _end_orphans(others: set[int]) -> tuple[str, ...]:
    """Wait until all processes but ``others`` have ended; kill and return those that do not."""
    deadline = time.monotonic() + ORPHANS_S
    while children := _children() - others:
        for child in children:
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    left = []
    for child in children:
        with suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
            left.append(words.decode(errors="replace"))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return tuple(left)


def _children() -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


def in_own_mounts() -> bool:
    """Whether this process may mount; it starts itself again in mounts of its own for that."""
    if os.environ.get("SOAK_MOUNTS"):
        return os.environ["SOAK_MOUNTS"] == "own"
    unshare = ["unshare", "--mount", "--map-root-user"]
    probe = subprocess.run(
        [*unshare, "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"],
        capture_output=True,
        check=False,
    )
    if probe.returncode:
        return False
    os.environ["SOAK_MOUNTS"] = "own"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    raise AssertionError
