"""Runs of a kernel by its launch file, and comparisons of its arrays with expected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.launch_file.array_files import read_array
from fa4gen.emulator.launch_file.arrays import LaunchArrays
from fa4gen.emulator.launch_file.model import (
    Argument,
    ArrayFile,
    LaunchFile,
    MadeArray,
    MapArgument,
    UsedArray,
    split_part,
)
from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem
from fa4gen.emulator.names import Names
from fa4gen.emulator.program import Program
from fa4gen.emulator.report import Report, Verdict


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected contents of an array; ``tolerance`` is absolute, and relative to the value."""

    array: str
    values: NDArray[Any]
    tolerance: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of an array: elements beyond the tolerance, and the largest error.

    ``largest_error`` is the largest difference, ``at`` its index; None where a NaN stands for a
    number or the other way round.
    """

    array: str
    wrong: int
    elements: int
    largest_error: float | None
    at: tuple[int, ...]

    @property
    def passed(self) -> bool:
        """Whether every element is near enough."""
        return self.wrong == 0


@dataclass(frozen=True, slots=True)
class Run:
    """One launch: the emulator's report, comparisons, and the arrays afterwards.

    ``strict`` runs pass only with a clean verdict, others also with findings below errors.
    """

    report: Report
    comparisons: tuple[Comparison, ...]
    arrays: dict[str, NDArray[Any]]
    strict: bool = False

    @property
    def passed(self) -> bool:
        """Whether the verdict is good enough and all comparisons hold."""
        good = (Verdict.CLEAN,) if self.strict else (Verdict.CLEAN, Verdict.REVIEW, Verdict.ISA)
        return self.report.verdict in good and all(one.passed for one in self.comparisons)


def expectations(
    launch: LaunchArrays, folder: Path, more: Mapping[str, Path]
) -> tuple[Expectation, ...]:
    """Read the expectations of the launch file and those of ``more``, by name of the array.

    Raises LaunchFileError.
    """
    found: dict[str, Expectation] = {}
    paths: dict[str, tuple[Path, str]] = {}
    for name, one in launch.described.items():
        if one.expect is not None:
            paths[name] = (folder / one.expect, f"{launch.places[name]}.expect")
    for name, path in more.items():
        if name not in launch.arrays:
            there = ", ".join(launch.arrays) or "none"
            raise LaunchFileError(
                LaunchProblem(f"no array is called {name!r}; there is {there}", "--expect")
            )
        paths[name] = (path, "--expect")
    for name, (path, key) in paths.items():
        array = launch.arrays[name]
        values = read_array(path, None, key, raw_as=array.dtype.name)
        if values.shape != array.shape:
            raise LaunchFileError(
                LaunchProblem(
                    f"{path} has the shape {values.shape}, the array {name} {array.shape}", key
                )
            )
        found[name] = Expectation(name, values, launch.described[name].tolerance)
    return tuple(found.values())


def _names(file: LaunchFile) -> Names:
    """The names for reports, with those of the arrays that arguments lead to."""
    return replace(file.names.names(), parameters=tuple(map(_array_name, file.arguments)))


def _array_name(argument: Argument) -> str:
    """The array that an argument is called after, "" for others."""
    if isinstance(argument, UsedArray):
        return argument.use
    if isinstance(argument, MapArgument):
        return argument.tensor_map
    return (argument.name or "") if isinstance(argument, (ArrayFile, MadeArray)) else ""


def run_launch(
    program: Program,
    launch: LaunchArrays,
    expected: tuple[Expectation, ...] = (),
    *,
    trace: Path | None = None,
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Run]:
    """Run every seed with every schedule; the first run writes ``trace``.

    ``progress`` is called now and then with (CTAs finished, CTAs in all). Arrays are kept of the
    first run only. Raises LaunchError, UnsupportedError.
    """
    file = launch.file
    first = True
    for seed, schedule in file.runs():
        arguments, arrays, memory = launch.arguments()
        report = program.launch(
            file.entry,
            grid=file.grid,
            block=file.block,
            args=arguments,
            memory=memory,
            outputs=[arrays[name] for name in launch.outputs()],
            variables=launch.variables(arrays),
            dynamic_shared=file.dynamic_shared,
            cluster=file.cluster,
            seed=seed,
            schedule=schedule,
            checks=file.checks,
            names=_names(file),
            trace=trace,
            limits=file.limits(),
            resident_clusters=file.resident_clusters,
            registers_per_thread=file.registers_per_thread,
            pending_writes=(
                "all" if file.pending_writes == "all" else _parts(arrays, file.pending_writes)
            ),
            pending_reads=_parts(arrays, file.pending_reads),
            progress=progress,
        )
        trace = None
        compared = tuple(compare(arrays[one.array], one) for one in expected)
        yield Run(report.strict() if strict else report, compared, arrays if first else {}, strict)
        first = False


def _parts(arrays: Mapping[str, NDArray[Any]], texts: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays, or the bytes of them, that the texts name."""
    found = []
    for name, part in map(split_part, texts):
        array = arrays[name]
        found.append(array if part == slice(None) else array.reshape(-1).view(np.uint8)[part])
    return found


def compare(array: NDArray[Any], expected: Expectation) -> Comparison:
    """Compare element by element in float64; equal infinities and NaNs count as equal."""
    got, right = (np.atleast_1d(x).astype(np.float64) for x in (array, expected.values))
    with np.errstate(invalid="ignore"):
        error = np.where((got == right) | (np.isnan(got) & np.isnan(right)), 0.0, abs(got - right))
        allowed = expected.tolerance * (1 + abs(right))
        wrong = ~(error <= np.where(np.isfinite(right), allowed, 0.0))
    if not error.size:
        return Comparison(expected.array, 0, 0, 0.0, ())
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
    largest = float(error[worst])
    return Comparison(
        expected.array,
        int(np.count_nonzero(wrong)),
        error.size,
        largest if np.isfinite(largest) else None,
        tuple(int(index) for index in worst),
    )
