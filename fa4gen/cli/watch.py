"""``fa4gen render --watch``: renders again whenever something that it reads changes."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.cli.output import note, report_problems
from fa4gen.config.paths import shown_path
from fa4gen.counts import counted
from fa4gen.errors import Fa4genError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

INTERVAL_S = 0.3
"""The interval of looking at files; a change must also be over for as long, since editors write in
several steps."""
State = tuple[int, int, int]
"""The marks of a file's change: time in nanoseconds, bytes, inode."""


def watch(render: Callable[[], Collection[Path]], places: Callable[[], Iterable[Path]]) -> None:
    """Call ``render`` now and after each change, until KeyboardInterrupt or SystemExit.

    ``render`` returns the files that it read; ``places`` the files that it would begin with.
    Errors of the user's are reported, and the next change is waited for.
    """
    known: set[Path] = set()
    while True:
        begun = time.time_ns()
        before = _states({*known, *places()})
        try:
            known = set(render())
        except Fa4genError as error:
            report_problems(error.problems, error.exit_status, "text")
            known |= {Path(problem.file) for problem in error.problems if problem.file}
        sys.stdout.flush()
        late = {path: state for path, state in _states(known).items() if path not in before}
        if any(state is not None and state[0] > begun for state in late.values()):
            continue  # changed while it was read for the first time
        before |= late
        note(f"watching {counted(len(before), 'file')}; Ctrl-C ends")
        changed = _wait(before, known, places)
        note(f"changed: {', '.join(sorted(map(shown_path, changed)))}")


def inputs_of(
    configs: Callable[[], Iterable[Path]], templates: Path | None
) -> Callable[[], set[Path]]:
    """Return the ``places`` of a render: its configs, its templates, the project's file."""

    def places() -> set[Path]:
        from fa4gen.config.project_place import project_files

        found = set(project_files())
        with suppress(Fa4genError):  # reported by the render that follows
            found.update(configs())
        if templates is not None:
            found.update(path for path in templates.rglob("*") if path.is_file())
        return found

    return places


def _states(paths: Iterable[Path]) -> dict[Path, State | None]:
    return {path.absolute(): _state(path) for path in paths}


def _state(path: Path) -> State | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _wait(
    before: Mapping[Path, State | None],
    known: Collection[Path],
    places: Callable[[], Iterable[Path]],
) -> set[Path]:
    """Return the files that differ from ``before``, as soon as some do and no more change."""
    last = before
    while True:
        time.sleep(INTERVAL_S)
        now = _states({*known, *places()})
        if now == last and now != before:
            both = now.keys() & before.keys()
            return (now.keys() ^ before.keys()) | {
                path for path in both if now[path] != before[path]
            }
        last = now
