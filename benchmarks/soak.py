"""Thousands of random command lines over wrong files, under faults; counts what gives way.

python benchmarks/soak.py [--count 2000] [--seed 0] [--first 0] [--json FILE] [--cache DIR]
                          [--stop] [--show]

Lines run in walks of ten in one folder, over configs, sweeps, launch files, PTX and templates that
are right, slightly wrong or very wrong. A third of them meet a fault: a signal at a random time, a
full disk or stdout, a limit of the size of files, a folder that is read-only or gone, a closed pipe
or stream. Of every line these must hold, and what does not is a violation:

traceback  nothing that looks like one, and no warning of Python's, is printed
status     is one that docs/reference/commands.md names; one after a signal where one was sent
hang       it ends
processes  all that it started end with it
outside    nothing is written but what it was asked to write, the cache and temporary files
left       temporary files are gone, unless it was killed
half       every file that is there is whole
json       under --format json, stdout is one document

A walk follows from the seed and its number, but for the time at which signals come. ``--json``
appends a line for each command line. The exit status is 1 where there was a violation. Linux only;
where mounts are possible (as root, or in user namespaces), disks are really full or read-only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
for place_of_code in (str(ROOT), str(ROOT / "benchmarks")):
    if place_of_code not in sys.path:
        sys.path.insert(0, place_of_code)

from soak_commands import Line, draw_line  # noqa: E402
from soak_inputs import write_inputs  # noqa: E402
from soak_runs import OTHER_FAULTS, STREAMS, Place, Run, adopt_orphans, in_own_mounts, run_line  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

WALK = 10
FAULTY = 0.35
FORKED = 0.8
"""Of the lines whose streams work: those that run in a copy of this process, which is faster."""
DOCUMENTED = (0, 1, 2, 3, 4)
AFTER = {"int": (130, -2), "term": (143, -15), "kill": (-9,)}
"""Statuses after a signal; shells show 128 + number for one that ended the process itself."""
CLOSED_PIPE = 141
DEFAULTS = {"render": "generated", "sweep": "sweep-results"}
"""Where a command writes that is given no place."""
OUTPUT = re.compile(r"output:\s*([^\s,}]+)")
"""Of a launch file, which a mutation may have given another name."""
SIGNS = ("Traceback (most recent", "Warning: ", "Exception ignored", "Fatal Python", "Error in sys")

Files = dict[str, tuple[int, int, int]]
"""Size, time of change and inode by path."""


@dataclass(frozen=True)
class Record:
    """A line of ``--json``."""

    number: int
    args: tuple[str, ...]
    fault: str
    status: int
    seconds: float
    violations: tuple[str, ...]
    err: str = ""
    """The end of what it printed on stderr, where there was a violation."""


def files_of(folder: Path) -> Files:
    """Return every file and folder below ``folder``."""
    found: Files = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                stat = os.lstat(os.path.join(root, name))  # noqa: PTH118 (called often)
                size = 0 if name in folders else stat.st_size
                time_ns = 0 if name in folders else stat.st_mtime_ns
                found[os.path.join(root, name)] = (size, time_ns, stat.st_ino)  # noqa: PTH118
    return found


def half_written(path: Path) -> str:
    """Return what shows that the file is not whole, or ""."""
    try:
        raw = path.read_bytes()
        match path.suffix:
            case ".json":
                json.loads(raw)
            case ".jsonl" if not _is_json(raw):  # verify's report may be named so, too
                lines = raw.decode().split("\n")
                for line in lines[:-1]:
                    json.loads(line)
            case ".xml" | ".svg":
                from xml.etree import ElementTree

                ElementTree.fromstring(raw)
            case ".npy":
                import numpy as np

                np.load(path)
            case ".cu" | ".h" | ".cuh" | ".ptx" | ".c" | ".hpp" | ".lock" if raw[-1:] != b"\n":
                return "does not end with a line"
            case ".cubin":
                from cubin import Cubin

                Cubin(raw).functions  # noqa: B018 - it reads them
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def asked_to_write(line: Line, folder: Path) -> tuple[str, ...]:
    """Return the files and folders that the line may write; all where it names none."""
    if line.command in ("init", ""):
        return (str(folder),)
    paths = [folder / word for word in line.written if word]
    named = [*paths, *outputs_of_launches(line, folder)]
    if line.command in DEFAULTS:
        named.append(folder / DEFAULTS[line.command])
    return tuple(os.path.abspath(path) for path in named)  # noqa: PTH100 (links stay)


def outputs_of_launches(line: Line, folder: Path) -> Iterator[Path]:
    """Yield the outputs that the launch files of a line name."""
    for word in line.args:
        path = folder / word
        with suppress(OSError, ValueError):
            if path.is_file():
                yield from (folder / name for name in OUTPUT.findall(path.read_text()))


def changes_outside(before: Files, after: Files, allowed: tuple[str, ...]) -> list[str]:
    """Return what changed and is neither at nor below an allowed path; new parents are allowed."""
    outside = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        fine = any(
            path == a or path.startswith(f"{a}/") or a.startswith(f"{path}/") for a in allowed
        )
        # CuPy's and the driver's own caches
        if not fine and not any(cache in path for cache in ("/home/.cupy", "/home/.nv")):
            kind = "made" if path not in before else "removed" if path not in after else "changed"
            outside.append(f"{kind} {path}")
    return outside


def violations_of(
    line: Line, fault: str, run: Run, before: Files, after: Files, folder: Path, place: Place
) -> Iterator[str]:
    """Yield every violation, its kind first."""
    printed = run.out + run.err
    began = not run.signals or "fa4gen" in printed  # else a signal met Python's own start
    if "--traceback" not in line.args and began:
        for sign in SIGNS:
            if sign in printed:
                yield f"traceback: {sign}"
    fine = {*DOCUMENTED, *(status for name in run.signals for status in AFTER[name])}
    if fault in ("pipe", "error pipe"):
        fine |= {CLOSED_PIPE}
    if run.hung:
        yield "hang: it did not end"
    elif run.status not in fine:
        yield f"status: {run.status}"
    for process in run.left:
        yield f"processes: {process}"
    allowed = asked_to_write(line, folder)
    for change in changes_outside(before, after, allowed):
        path = change.partition(" ")[2]
        if not is_temporary(path, place):
            yield f"outside: {change}"
    for path in sorted(after.keys() - before.keys()):
        if is_temporary(path, place) and "kill" not in run.signals:
            yield f"left: {path}"
    if place.log.exists():
        for text in sorted(set(place.log.read_text().splitlines())):
            yield f"outside: {text}"
        place.log.unlink()
    yield from _new_files(before, after)
    wanted = [value for option, value in pairwise(line.args) if option == "--format"]
    if wanted[-1:] == ["json"] and not run.signals and not fault and run.status in DOCUMENTED:
        try:
            json.loads(run.out)
        except ValueError as error:
            if "--help" not in line.args and "-h" not in line.args:
                yield f"json: {error}"


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def is_temporary(path: str, place: Place) -> bool:
    """Whether a file or folder is nothing that anybody asked for, on its way to be one."""
    return path.endswith(".tmp") or path.startswith(f"{place.base}/tmp/")


def _new_files(before: Files, after: Files) -> Iterator[str]:
    for path in sorted(after):
        if before.get(path) == after[path]:
            continue
        if not path.endswith(".tmp") and Path(path).is_file() and (why := half_written(Path(path))):
            yield f"half: {path}: {why}"


def walk(number: int, seed: int, place: Place, mounts: bool, count: int) -> Iterator[Record]:
    """Yield the records of one walk."""
    rng = random.Random(f"{seed}/{number}")
    root = place.base / "walk"
    folder = root / "work"
    names = write_inputs(folder, rng)
    for step in range(count):
        line = draw_line(rng, names)
        fault = rng.choice((*OTHER_FAULTS, *STREAMS)) if rng.random() < FAULTY else ""
        if fault in ("full disk", "read-only") and not mounts:
            fault = ""
        forked = fault not in STREAMS and rng.random() < FORKED
        timing = random.Random(rng.random())
        run, violations = tried(line, fault, forked, root, place, timing)
        err = run.err[-3000:] if violations else ""
        index = number * WALK + step
        yield Record(index, line.args, fault, run.status, run.seconds, violations, err)
    subprocess.run(["chmod", "-R", "u+w", root], check=False)
    shutil.rmtree(root)


def tried(
    line: Line, fault: str, forked: bool, root: Path, place: Place, rng: random.Random
) -> tuple[Run, tuple[str, ...]]:
    """Run a line under its fault and judge it."""
    folder = root / "work"
    mounted = fault in ("full disk", "read-only")
    if mounted:
        _mount(folder, fault, rng)
    elif fault == "no folder":
        folder = root / "gone"
        folder.mkdir()
    if fault == "no folder":
        os.chdir(folder)
        folder.rmdir()
    try:
        before = files_of(place.base)
        run = run_line(line.args, folder, place, fault, rng, quick=line.is_quick, forked=forked)
        after = files_of(place.base)
        for files in (before, after):
            for path in list(files):
                if not path.startswith((f"{root}/", f"{place.base}/home", f"{place.base}/tmp")):
                    del files[path]
        found = tuple(violations_of(line, fault, run, before, after, folder, place))
    finally:
        os.chdir(place.base)
        if mounted:
            subprocess.run(["umount", root / "work"], check=True)
    for child in (place.base / "tmp").iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    return run, found


def _mount(folder: Path, fault: str, rng: random.Random) -> None:
    """Put a disk with the same files over ``folder``: one that is almost full, or read-only."""
    copy = folder.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["cp", "-a", folder, copy], check=True)
    used = sum(4096 + size // 4096 * 4096 for size, _, _ in files_of(copy).values()) + 8192
    room = rng.choice((0, 4096, 40_960, 400_000))
    options = f"size={used + room}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    subprocess.run(["cp", "-a", f"{copy}/.", folder], check=True)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    shutil.rmtree(copy)


def main() -> int:
    """Walk, count and report; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first walk")
    parser.add_argument("--json", type=Path, help="append a line for each command line")
    parser.add_argument("--cache", type=Path, help="folder of compiled kernels; else a new one")
    parser.add_argument("--stop", action="store_true", help="stop at the first violation")
    parser.add_argument("--show", action="store_true", help="print every line")
    arguments = parser.parse_args()
    mounts = in_own_mounts()
    adopt_orphans()
    statuses: Counter[int] = Counter()
    faults: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    start = time.perf_counter()
    checkout = files_of(ROOT / "fa4gen") | files_of(ROOT / "configs") | files_of(ROOT / "templates")
    base = Path(tempfile.mkdtemp(prefix="soak")).resolve()  # no exit handler: forks would run it
    try:
        place = Place(base, (arguments.cache or base / "cache").resolve())
        for record in _records(arguments, place, mounts):
            statuses[record.status] += 1
            faults[record.fault or "none"] += 1
            kinds.update(violation.partition(":")[0] for violation in record.violations)
            if arguments.json:
                with arguments.json.open("a") as file:
                    file.write(json.dumps(asdict(record)) + "\n")
            if record.violations or arguments.show:
                _show(record)
            if record.violations and arguments.stop:
                break
    finally:
        shutil.rmtree(base)
    now = files_of(ROOT / "fa4gen") | files_of(ROOT / "configs") | files_of(ROOT / "templates")
    changed = [path for path in now.keys() | checkout.keys() if now.get(path) != checkout.get(path)]
    changed = [path for path in changed if "__pycache__" not in path]
    kinds["outside"] += len(changed)
    for path in changed:
        print(f"outside: {path}")
    print(f"{sum(statuses.values())} lines in {time.perf_counter() - start:.0f} s")
    print("statuses:", ", ".join(f"{s}: {n}" for s, n in sorted(statuses.items())))
    print("faults:", ", ".join(f"{f}: {n}" for f, n in sorted(faults.items())))
    print("violations:", ", ".join(f"{k}: {n}" for k, n in sorted(kinds.items()) if n) or "none")
    return 1 if any(kinds.values()) else 0


def _records(arguments: argparse.Namespace, place: Place, mounts: bool) -> Iterator[Record]:
    left, number = arguments.count, arguments.first
    while left > 0:
        yield from walk(number, arguments.seed, place, mounts, min(WALK, left))
        left, number = left - WALK, number + 1


def _show(record: Record) -> None:
    words: dict[str, Any] = {"fault": record.fault, "status": record.status}
    print(f"{record.number}: fa4gen {' '.join(map(repr, record.args))}  {words}")
    for violation in record.violations:
        print(f"  {violation}")
    if record.err:
        print("  | " + "\n  | ".join(record.err.splitlines()[-12:]))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
