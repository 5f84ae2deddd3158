"""Launch files: the YAML that defines the launch of a kernel, with its arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from fa4gen.emulator.checks.options import CheckOptions
from fa4gen.emulator.errors import EmulatorError
from fa4gen.emulator.names import NamedRange, NamedThreads, Names
from fa4gen.emulator.scheduling.limits import Limits
from fa4gen.emulator.scheduling.residents import MAX_RESIDENT
from fa4gen.strict import Field, Named, Read, Strict, rule

T = TypeVar("T")
Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
Natural = Annotated[int, Field(ge=0, le=2**63 - 1)]
Schedule = Literal["uniform", "priority", "starve", "eager", "lazy", "starve_warp"]
Extent = Positive | Annotated[tuple[Positive, ...], Field(min_length=1, max_length=3)]


def split_pointer(text: str) -> tuple[str, int]:
    """Array and offset of ``NAME`` or ``NAME + BYTES``. Raises ValueError."""
    name, plus, offset = (part.strip() for part in text.partition("+"))
    if not name or (plus and not offset.isdecimal()):
        raise ValueError(f"expected NAME or NAME + BYTES, not {text!r}")
    return name, int(offset or 0)


def split_part(text: str) -> tuple[str, slice]:
    """Array and bytes of ``NAME`` or ``NAME[FIRST:STOP]``. Raises ValueError."""
    found = re.fullmatch(r"\s*([^\[\]]+?)\s*(?:\[(\d+):(\d+)\])?\s*", text)
    if found is None:
        raise ValueError(f"expected NAME or NAME[FIRST:STOP], not {text!r}")
    first, stop = found[2], found[3]
    return found[1], slice(None) if first is None else slice(int(first), int(stop))


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, not {number}")
    return number


def _part(text: str) -> str:
    split_part(text)
    return text


def _pointer(text: str) -> str:
    split_pointer(text)
    return text


def _known_checks(checks: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
    try:
        CheckOptions.parse(checks)
    except EmulatorError as error:
        raise ValueError(str(error)) from None
    return checks


def by_offset(named: Mapping[str, T]) -> dict[int, T]:
    """Return ``named`` by offset in bytes: keys of a file are text. Raises ValueError."""
    found: dict[int, T] = {}
    for key, one in named.items():
        number = int(key, 0) if _OFFSET.fullmatch(key) else -1
        if not 0 <= number < 2**63:
            raise ValueError(f"expected an offset in bytes, not {key!r}")
        if number in found:
            raise ValueError(f"the offset {key} is given twice")
        found[number] = one
    return found


def _offsets(named: dict[str, Any]) -> dict[str, Any]:
    by_offset(named)
    return named


def bytes_of(value: Any) -> Any:
    """The number of bytes in a text with a unit; all but text is returned unchanged.

    Raises ValueError.
    """
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    if found is None:
        raise ValueError(f"expected bytes, or a number with a unit such as 8GiB, not {value!r}")
    return int(float(found[1]) * 1024 ** " KMGT".index((found[2] or " ").upper()))


MAX_RUNS: Final = 10_000
"""Seeds times schedules of one file: the reports of all runs are kept until the end."""
MAX_DIMENSIONS: Final = 32
NONE: Final = Named()
"""No entries by name."""
_OFFSET: Final = re.compile(r"0|[1-9][0-9]{0,18}|0x[0-9a-fA-F]{1,16}")
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?:([KMGTkmgt])i?)?[Bb]?")
Finite = Annotated[float, Read(_finite)]
Pointers = Annotated[dict[str, Annotated[str, Read(_pointer)]], Read(_offsets)]
Memory = Annotated[Positive, Read(bytes_of, first=True, also=(str,))]


class MapArgument(Strict):
    """A tensor map over the array of that name; axes in the array's own order."""

    tensor_map: str
    box: tuple[Positive, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    element_strides: tuple[Positive, ...] | None = None
    interleave: Literal["none"] = "none"
    fill: Literal["zero", "nan"] = "zero"
    dtype: str | None = None
    shape: tuple[Natural, ...] | None = None
    strides: tuple[int, ...] | None = None
    atom: Literal[16, 32, 64] = 16
    packed: Literal["16u4_align8b", "16u4_align16b", "16u6_align16b"] | None = None
    im2col: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """The lower and the upper corner of an im2col map."""


MapsAt = Annotated[dict[str, MapArgument], Read(_offsets)]


class _Array(Strict):
    name: str | None = None
    """The array's name in tensor maps, ``use`` and on the command line."""
    dtype: str | None = None
    output: str | None = None
    """File (.npy) for the array's contents after the first run."""
    expect: str | None = None
    """File (.npy) with the contents that every run has to leave in the array."""
    partial: bool = False
    """The kernel need not write every element of an array with ``output`` or ``expect``."""
    tolerance: Annotated[float, Field(ge=0), Read(_finite)] = 0.0
    """Allowed difference from ``expect``, absolute and relative to it."""
    address: Natural | None = None
    """The array's address in the emulated global memory, for raw bytes that point to it."""
    pointers: Pointers = NONE
    """Words of 8 bytes in the array that are addresses: ``NAME`` or ``NAME + BYTES`` by offset."""
    tensor_maps: MapsAt = NONE
    """Tensor maps in the array, by offset in bytes."""


class ArrayFile(_Array):
    """An array from a .npy file. ``dtype`` reads its bits as a type that files do not know."""

    array: str


class MadeArray(_Array):
    """An array made on the spot; the same ``seed`` gives the same numbers.

    ``scale`` multiplies normal, uniform and arange; ``low`` and ``high`` (exclusive) bound uniform
    and randint; ``value`` is that of full.
    """

    make: Literal["normal", "uniform", "zeros", "ones", "arange", "full", "randint"]
    shape: Annotated[tuple[Natural, ...], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    dtype: str = "float32"
    seed: Natural = 0
    scale: Finite = 1.0
    low: Finite = 0
    high: Finite | None = None
    value: float = 0

    @rule
    def _bounds(self) -> None:
        if self.make == "randint" and self.high is None:
            raise ValueError("randint needs high, the first whole number that is not drawn")
        if self.high is not None and self.high <= self.low:
            raise ValueError(f"high ({self.high:g}) has to be more than low ({self.low:g})")


class ScalarArgument(Strict):
    """A number, as the bytes of ``dtype``."""

    scalar: bool | int | float
    dtype: str


class BytesArgument(Strict):
    """A parameter as raw bytes: hexadecimal digits, in which spaces do not count."""

    bytes: str
    size: Positive | None = None
    """The parameter's bytes, if more than are given: the rest is zero."""
    pointers: Pointers = NONE
    tensor_maps: MapsAt = NONE


class BytesFile(Strict):
    """A parameter as raw bytes from a file, of which they are all."""

    bytes_file: str
    size: Positive | None = None
    pointers: Pointers = NONE
    tensor_maps: MapsAt = NONE


class UsedArray(Strict):
    """The array of another argument, or of ``arrays``, once more."""

    use: str


class ZerosArgument(Strict):
    """A parameter whose bytes are all zero, such as a null pointer."""

    zeros: Literal[True]


Arrays = ArrayFile | MadeArray
Argument = (
    ArrayFile
    | MadeArray
    | MapArgument
    | ScalarArgument
    | BytesArgument
    | BytesFile
    | UsedArray
    | ZerosArgument
)


class NamesSection(Strict):
    """Names for reports. ``shared``: [start, stop] or [start, stop, slot bytes] by name."""

    shared: dict[str, Annotated[tuple[Natural, ...], Field(min_length=2, max_length=3)]] = NONE
    roles: dict[str, tuple[Natural, Natural]] = NONE
    """First thread and the one after the last, by role."""
    base_align: Positive = 1

    def names(self) -> Names:
        """The names in the emulator's form."""
        return Names(
            shared=tuple(
                NamedRange(name, start, stop, *slot)
                for name, (start, stop, *slot) in self.shared.items()
            ),
            roles=tuple(NamedThreads(name, *ends) for name, ends in self.roles.items()),
            base_align=self.base_align,
        )


class LaunchFile(Strict):
    """The whole file; paths in it are relative to its folder."""

    entry: str | None = None
    """The kernel to launch, by name."""
    grid: Extent = 1
    """CTAs: a number, or up to three."""
    block: Extent
    """Threads of a CTA: a number, or up to three."""
    cluster: Extent | None = None
    """CTAs of a cluster: a number, or up to three."""
    dynamic_shared: Natural = 0
    """Bytes of dynamic shared memory."""
    arguments: tuple[Argument, ...] = ()
    """The kernel's parameters, in order."""
    arrays: dict[str, Arrays] = NONE
    """Arrays that no parameter points to, for tensor maps and pointers."""
    variables: dict[str, Arrays] = NONE
    """Contents of the module's global variables, by name."""
    seeds: Positive | Annotated[tuple[Natural, ...], Field(min_length=1)] = 1
    """This number of seeds from 0 on, or these."""
    schedules: Annotated[tuple[Schedule, ...], Field(min_length=1)] = ("uniform",)
    checks: Annotated[bool | tuple[str, ...], Read(_known_checks)] = True
    max_steps: Positive | None = None
    max_memory: Memory | None = None
    """Bytes that the process may use; also as text, such as 8GiB."""
    resident_clusters: Annotated[int, Field(ge=1, le=MAX_RESIDENT)] | None = None
    registers_per_thread: Annotated[int, Field(ge=1, le=255)] | None = None
    pending_writes: Literal["all"] | tuple[Annotated[str, Read(_part)], ...] = ()
    """Arrays, or bytes ``NAME[FIRST:STOP]`` of them, that the grid before writes, in a programmatic
    dependent launch; all: whatever memory there is."""
    pending_reads: tuple[Annotated[str, Read(_part)], ...] = ()
    """Arrays, or bytes of them, that the grid before reads."""
    names: NamesSection = NamesSection()

    @rule
    def _few_runs(self) -> None:
        if self.num_runs() > MAX_RUNS:
            raise ValueError(
                f"{self.num_runs()} runs (seeds times schedules); at most {MAX_RUNS} fit into one"
                " command: name a part of the seeds, as a list"
            )

    def num_runs(self) -> int:
        """Seeds times schedules."""
        seeds = self.seeds if isinstance(self.seeds, int) else len(self.seeds)
        return seeds * len(self.schedules)

    def runs(self) -> Iterator[tuple[int, str]]:
        """Seed and schedule of each run."""
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        return ((seed, schedule) for seed in seeds for schedule in self.schedules)

    def limits(self) -> Limits:
        """The limits of a run."""
        steps = Limits().steps if self.max_steps is None else self.max_steps
        return Limits(steps=steps, memory=self.max_memory)
