"""The results file of a sweep: JSON Lines, appended to as cases finish.

It survives being killed at any time: a line that was cut off is dropped when the file is opened
again. When a run ends, the file is rewritten with one line for each case, in the sweep's order.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, MissingCapabilityError, Problem
from fa4gen.locks import lock, open_for_appending
from fa4gen.temporary import temporary_path
from fa4gen.workers import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from fa4gen.workers import Done

SUFFIX = ".jsonl"
News = Literal["new", "kept"]


def results_path(place: Path, sweep: str, shard: tuple[int, int]) -> Path:
    """Return the file for a sweep's results: ``place`` itself if it is a .jsonl, else inside it.

    Every shard (i of n) has a file of its own in a folder.
    """
    if place.suffix == SUFFIX:
        return place
    part = f".{shard[0]}of{shard[1]}" if shard[1] > 1 else ""
    return place / f"{sweep}{part}{SUFFIX}"


class Line(Protocol):
    """A record of such a file."""

    @property
    def sweep(self) -> str:
        """The name of the sweep that all lines of a file belong to."""

    @property
    def case(self) -> str:
        """The name of the line's case; each case has one line."""

    def line(self) -> str:
        """Return the line, its end included."""


R = TypeVar("R", bound=Line)
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """The outcome of a task."""

    record: R | None = None
    """None where the earlier record is still valid."""
    missing: tuple[Problem, ...] = ()
    """A capability that no task can do without."""


class ResultsFile(Generic[R]):
    """An open results file; no other process can open it meanwhile."""

    def __init__(
        self,
        path: Path,
        sweep: str,
        *,
        fresh: bool,
        read: Callable[[str], R],
        kind: str = "a sweep",
    ) -> None:
        """Open or create the file at ``path``; with ``fresh`` forget the records in it.

        ``read`` makes a record of a line, or raises ValueError; ``kind`` names the work recorded.
        Raises ConfigError for a file that cannot be written, that another process has open, or that
        holds something else than results of ``sweep``.
        """
        self.path = path
        self._sweep = sweep
        self._kind = kind
        self._read_line = read
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = open_for_appending(path)
        except OSError as error:
            raise self._refusal(
                f"cannot be written: {error.strerror}", "Choose another place with --results."
            ) from error
        try:
            self._lock()
            self.records = self._read()
            if fresh:
                os.ftruncate(self._descriptor, 0)
                self.records = {}
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, record: R) -> None:
        """Add a record; it is on disk when this returns."""
        os.write(self._descriptor, record.line().encode())  # one call: whole lines
        os.fsync(self._descriptor)
        self.records[record.case] = record

    def rewrite(self, records: Iterable[R]) -> None:
        """Replace the file's content by ``records``, at once or not at all."""
        new = temporary_path(self.path)
        try:
            with new.open("wb") as stream:
                stream.writelines(record.line().encode() for record in records)
                stream.flush()
                os.fsync(stream.fileno())
            new.chmod(self.path.stat().st_mode)
            if os.name == "nt":  # an open file cannot be replaced there
                os.close(self._descriptor)
                new.replace(self.path)
                self._descriptor = open_for_appending(self.path)
                self._lock()
            else:
                new.rename(self.path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def take(
        self,
        outcomes: Iterable[tuple[T, Done[Outcome[R]] | Lost]],
        report: Callable[[R, News], None],
        *,
        earlier: Callable[[T], R],
        lost: Callable[[T, Lost], R],
    ) -> dict[str, R]:
        """Return the records of all outcomes by case; each is on disk as soon as it is known.

        ``earlier`` gives the record that is still valid, ``lost`` that of a task whose worker was
        lost. Raises MissingCapabilityError where nothing can be done on this machine.
        """
        found: dict[str, R] = {}
        for task, outcome in outcomes:
            news: News = "new"
            if isinstance(outcome, Lost):
                record = lost(task, outcome)
            elif outcome.result.missing:
                raise MissingCapabilityError(*outcome.result.missing)
            elif outcome.result.record is None:
                record, news = earlier(task), "kept"
            else:
                record = outcome.result.record
            if news == "new":
                self.append(record)
            found[record.case] = record
            report(record, news)
        return found

    def close(self) -> None:
        """Let other processes open the file."""
        os.close(self._descriptor)

    def __enter__(self) -> ResultsFile[R]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            lock(self._descriptor)
        except BlockingIOError as error:
            raise self._refusal(
                "another run is writing to it", "Wait for it, or choose another --results."
            ) from error
        except OSError:
            pass  # a file system without locks: two runs at once then only repeat work

    def _read(self) -> dict[str, R]:
        with os.fdopen(os.dup(self._descriptor), "rb") as stream:
            stream.seek(0)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        records: dict[str, R] = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                record = self._read_line(line.decode())
            except ValueError as error:
                raise self._refusal(
                    f"line {number} is not a result of {self._kind}: {error}",
                    "Choose another --results; this file is left as it is.",
                ) from error
            if record.sweep != self._sweep:
                raise self._refusal(
                    f"holds results of {self._kind.replace('a ', 'the ')} {record.sweep}, not of "
                    f"{self._sweep}",
                    "Choose another --results; this file is left as it is.",
                )
            records[record.case] = record
        if len(whole) < len(data):
            if not records and not data.startswith(b"{"):
                raise self._refusal(
                    "is not a results file", "Choose another --results; this file is left as it is."
                )
            os.ftruncate(self._descriptor, len(whole))
        return records

    def _refusal(self, message: str, remedy: str) -> ConfigError:
        return ConfigError(Problem(message, remedy, shown_path(self.path)))
