"""Launch files: the YAML that defines the launch of a kernel, with its arguments.

Every error in a file is a LaunchFileError that names the key and the values expected there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from fa4gen.emulator.checks.options import CheckOptions
from fa4gen.emulator.errors import EmulatorError
from fa4gen.emulator.launch_file.problems import (
    NO_PLACES,
    LaunchFileError,
    LaunchProblem,
    Places,
    launch_problems,
)
from fa4gen.emulator.names import NamedRange, NamedThreads, Names
from fa4gen.emulator.scheduling.limits import Limits
from fa4gen.emulator.scheduling.residents import MAX_RESIDENT

Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
Natural = Annotated[int, Field(ge=0, le=2**63 - 1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Schedule = Literal["uniform", "priority", "starve", "eager", "lazy", "starve_warp"]
Extent = Positive | Annotated[list[Positive], Field(min_length=1, max_length=3)]


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


def _part(text: str) -> str:
    split_part(text)
    return text


def _pointer(text: str) -> str:
    split_pointer(text)
    return text


def _offsets(value: Any) -> Any:
    """Keys that count bytes, as numbers: keys of a file are text."""
    if not isinstance(value, dict):
        return value
    found: dict[Any, Any] = {}
    for key, one in value.items():
        number = key
        if isinstance(key, str) and _OFFSET.fullmatch(key):
            number = int(key, 0)
        if number in found:
            raise ValueError(f"the offset {key} is given twice")
        found[number] = one
    return found


def bytes_of(value: Any) -> Any:
    """The number of bytes in a text with a unit; anything but text is returned unchanged.

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
_OFFSET: Final = re.compile(r"0|[1-9][0-9]{0,18}|0x[0-9a-fA-F]{1,16}")
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?:([KMGTkmgt])i?)?[Bb]?")
Offsets = BeforeValidator(_offsets)
Pointers = Annotated[dict[Natural, Annotated[str, AfterValidator(_pointer)]], Offsets]
Memory = Annotated[Positive, BeforeValidator(bytes_of)]


class _Part(BaseModel):
    """Keys that are not known are mistakes; nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MapArgument(_Part):
    """A tensor map over the array of that name; axes in the array's own order."""

    tensor_map: str
    box: list[Positive]
    swizzle: Literal[0, 32, 64, 128] = 0
    element_strides: list[Positive] | None = None
    interleave: Literal["none"] = "none"
    fill: Literal["zero", "nan"] = "zero"
    dtype: str | None = None
    shape: list[Natural] | None = None
    strides: list[int] | None = None
    atom: Literal[16, 32, 64] = 16
    packed: Literal["16u4_align8b", "16u4_align16b", "16u6_align16b"] | None = None
    im2col: Annotated[list[list[int]], Field(min_length=2, max_length=2)] | None = None
    """The lower and the upper corner of an im2col map."""


MapsAt = Annotated[dict[Natural, MapArgument], Offsets]


class _Array(_Part):
    name: str | None = None
    """The array's name in tensor maps, ``use`` and on the command line."""
    dtype: str | None = None
    output: str | None = None
    """File (.npy) for the array's contents after the first run."""
    expect: str | None = None
    """File (.npy) with the contents that every run has to leave in the array."""
    partial: bool = False
    """The kernel need not write every element of an array with ``output`` or ``expect``."""
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Allowed difference from ``expect``, absolute and relative to it."""
    address: Natural | None = None
    """The array's address in the emulated global memory, for raw bytes that point to it."""
    pointers: Pointers = {}
    """Words of 8 bytes in the array that are addresses: ``NAME`` or ``NAME + BYTES`` by offset."""
    tensor_maps: MapsAt = {}
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
    shape: Annotated[list[Natural], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    dtype: str = "float32"
    seed: Natural = 0
    scale: Finite = 1.0
    low: Finite = 0
    high: Finite | None = None
    value: float = 0

    @model_validator(mode="after")
    def _bounds(self) -> MadeArray:
        if self.make == "randint" and self.high is None:
            raise ValueError("randint needs high, the first whole number that is not drawn")
        if self.high is not None and self.high <= self.low:
            raise ValueError(f"high ({self.high:g}) has to be more than low ({self.low:g})")
        return self


class ScalarArgument(_Part):
    """A number, as the bytes of ``dtype``."""

    scalar: bool | int | float
    dtype: str


class BytesArgument(_Part):
    """A parameter as raw bytes: hexadecimal digits, in which spaces do not count."""

    bytes: str
    size: Positive | None = None
    """The parameter's bytes, if more than are given: the rest is zero."""
    pointers: Pointers = {}
    tensor_maps: MapsAt = {}


class BytesFile(_Part):
    """A parameter as raw bytes from a file, of which they are all."""

    bytes_file: str
    size: Positive | None = None
    pointers: Pointers = {}
    tensor_maps: MapsAt = {}


class UsedArray(_Part):
    """The array of another argument, or of ``arrays``, once more."""

    use: str


class ZerosArgument(_Part):
    """A parameter whose bytes are all zero, such as a null pointer."""

    zeros: Literal[True]


def _kind(value: Any) -> str | None:
    """The key that determines an argument's kind."""
    keys = value if isinstance(value, dict) else ()
    return next((kind for kind in ARGUMENT_KINDS if kind in keys), None)


ARGUMENT_KINDS: Final = (
    "array", "make", "tensor_map", "scalar", "bytes", "bytes_file", "use", "zeros",
)  # fmt: skip
Arrays = Annotated[
    Annotated[ArrayFile, Tag("array")] | Annotated[MadeArray, Tag("make")],
    Discriminator(
        _kind,
        custom_error_type="kind",
        custom_error_message="expected a mapping with one of the keys array, make",
    ),
]
Argument = Annotated[
    Annotated[ArrayFile, Tag("array")]
    | Annotated[MadeArray, Tag("make")]
    | Annotated[MapArgument, Tag("tensor_map")]
    | Annotated[ScalarArgument, Tag("scalar")]
    | Annotated[BytesArgument, Tag("bytes")]
    | Annotated[BytesFile, Tag("bytes_file")]
    | Annotated[UsedArray, Tag("use")]
    | Annotated[ZerosArgument, Tag("zeros")],
    Discriminator(
        _kind,
        custom_error_type="kind",
        custom_error_message="expected a mapping with one of the keys " + ", ".join(ARGUMENT_KINDS),
    ),
]


class NamesSection(_Part):
    """Names for reports. ``shared``: [start, stop] or [start, stop, slot bytes] by name."""

    shared: dict[str, Annotated[list[Natural], Field(min_length=2, max_length=3)]] = {}
    roles: dict[str, Annotated[list[Natural], Field(min_length=2, max_length=2)]] = {}
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


class LaunchFile(_Part):
    """The whole file; paths in it are relative to its folder."""

    entry: str | None = None
    grid: Extent = 1
    block: Extent
    cluster: Extent | None = None
    dynamic_shared: Natural = 0
    arguments: list[Argument] = []
    arrays: dict[str, Arrays] = {}
    """Arrays that no parameter points to, for tensor maps and pointers."""
    variables: dict[str, Arrays] = {}
    """Contents of the module's global variables, by name."""
    seeds: Positive | Annotated[list[Natural], Field(min_length=1)] = 1
    """This number of seeds from 0 on, or these."""
    schedules: Annotated[list[Schedule], Field(min_length=1)] = ["uniform"]
    checks: bool | list[str] = True
    max_steps: Positive | None = None
    max_memory: Memory | None = None
    """Bytes that the process may use; also as text, such as 8GiB."""
    resident_clusters: Annotated[int, Field(ge=1, le=MAX_RESIDENT)] | None = None
    registers_per_thread: Annotated[int, Field(ge=1, le=255)] | None = None
    pending_writes: list[Annotated[str, AfterValidator(_part)]] = []
    """Arrays, or bytes ``NAME[FIRST:STOP]`` of them, that the grid before writes, in a programmatic
    dependent launch."""
    names: NamesSection = NamesSection()

    @field_validator("checks")
    @classmethod
    def _known_checks(cls, checks: bool | list[str]) -> bool | list[str]:
        try:
            CheckOptions.parse(checks)
        except EmulatorError as error:
            raise ValueError(str(error)) from None
        return checks

    @model_validator(mode="after")
    def _few_runs(self) -> LaunchFile:
        self.check_runs()
        return self

    def check_runs(self) -> None:
        """Raise ValueError for more than MAX_RUNS runs."""
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


def launch_file_of(data: Any, places: Places = NO_PLACES) -> LaunchFile:
    """The launch file that plain data describes; its keys are text.

    Raises LaunchFileError with every mistake and its place.
    """
    if not isinstance(data, dict):
        raise LaunchFileError(
            LaunchProblem(
                "a launch file is a mapping with the keys block, arguments, ...",
                "",
                *places.get((), (0, 0)),
            )
        )
    try:
        return LaunchFile.model_validate(data)
    except ValidationError as error:
        problems = launch_problems(error, data, places, _known_keys)
    raise LaunchFileError(*problems)


def _known_keys(loc: Sequence[str | int]) -> tuple[str, ...]:
    """The keys of the model that an error of pydantic's is about."""
    model: type[BaseModel] = LaunchFile
    if len(loc) > 1 and loc[0] == "names":
        model = NamesSection
    elif len(loc) > 2:
        model = MapArgument if "tensor_maps" in loc[3:] else _MODELS[str(loc[2])]
    return tuple(model.model_fields)


_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "array": ArrayFile,
    "make": MadeArray,
    "tensor_map": MapArgument,
    "scalar": ScalarArgument,
    "bytes": BytesArgument,
    "bytes_file": BytesFile,
    "use": UsedArray,
    "zeros": ZerosArgument,
}
