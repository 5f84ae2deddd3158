"""Kinds of values: what an annotation allows, and whether a value is that.

| annotation | values |
|---|---|
| ``Literal[...]`` | those, of the same type: ``128.0`` is not ``128``, ``true`` not ``1`` |
| ``bool``, ``None`` | those |
| ``int`` | whole numbers, without truth values |
| ``float`` | numbers; whole ones become floats |
| ``str`` | texts |
| ``tuple[T, ...]``, ``tuple[T, T]`` | lists of T; of two |
| ``dict[str, T]`` | mappings of free names to T |
| a model | mappings with its keys, and objects of the model |
| ``A | B`` | any of them |
| ``Any`` | anything |

``Annotated`` adds a ``Field`` with limits, and ``Read``, a function of one's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

from fa4gen.overriding import override

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Callable, Sequence

KeyPath = tuple[str | int, ...]
Limit: TypeAlias = float


class Fault(NamedTuple):
    """A fault at one place of a document."""

    path: KeyPath
    kind: Literal["unknown", "missing", "value", "fixed", "rule"]
    """A key that is not known, one that is missing, a value of the wrong kind, another value than
    the one of a fixed key, a broken rule."""
    message: str = ""
    """The sentence of a rule or a fixed key."""
    character: int | None = None
    """The character of a text at fault, if known."""
    remedy: str = ""
    """The remedy for a fixed key."""


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """Limits of a number, a text or a list, for ``Annotated``; None for none."""

    ge: Limit | None = None
    le: Limit | None = None
    multiple_of: Limit | None = None
    pattern: str | None = None
    """A regular expression that is found in the text, of which ``$`` means the end."""
    min_length: int | None = None
    max_length: int | None = None
    """Characters of a text, entries of a list."""
    description: str = ""
    """For the JSON Schema."""

    def takes(self, number: float) -> bool:
        """Whether the number is within the limits; NaN is not within any, but there may be none."""
        return (
            (self.ge is None or number >= self.ge)
            and (self.le is None or number <= self.le)
            and (self.multiple_of is None or number % self.multiple_of == 0)
        )

    def takes_text(self, text: str) -> bool:
        """Whether the text is within the limits."""
        return self.takes_length(len(text)) and (
            self.pattern is None or bool(re.search(_python_pattern(self.pattern), text))
        )

    def takes_length(self, length: int) -> bool:
        """Whether there may be ``length`` characters or entries."""
        return (self.min_length is None or length >= self.min_length) and (
            self.max_length is None or length <= self.max_length
        )


def _python_pattern(pattern: str) -> str:
    """Return ``pattern`` for Python, whose $ also matches before a last line end."""
    return rf"{pattern[:-1]}\Z" if pattern.endswith("$") else pattern


@dataclass(frozen=True)
class FixedKey:
    """A key that a model has no field for, as one value follows from the rest, which may be given.

    Related models have the key: a document may move from one to the other without losing it.
    """

    key: str
    values: tuple[bool | float | str, ...]
    """Values that a document may give, the one to offer in front."""
    because: str

    def takes(self, value: object) -> bool:
        """Whether a document may give ``value``."""
        if type(value) is int:
            return any(type(one) in (int, float) and value == one for one in self.values)
        return any(type(value) is type(one) and value == one for one in self.values)

    @property
    def decided(self) -> tuple[bool | float | str, ...]:
        """The values that are not auto."""
        return tuple(value for value in self.values if value != "auto")


@dataclass(frozen=True, eq=False, repr=False)
class Read:
    """A function that returns what to keep of a value, for ``Annotated``; ValueError: a rule."""

    function: Callable[[Any], Any]
    first: bool = False
    """Whether it is given what is written, and its result is checked; else what was checked."""
    also: tuple[type, ...] = ()
    """Types that may be written in place of the result's, for the JSON Schema."""


class Model(Protocol):
    """The interface of a model."""

    @property
    def model_fields(self) -> collections.abc.Mapping[str, Any]:
        """The keys."""

    def model_read(self, data: Any, path: KeyPath, faults: list[Fault]) -> Any:
        """Return the object of ``data`` at ``path``; or add its faults."""


class Kind:
    """The values that an annotation allows."""

    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        """Return the value to keep for ``value`` at ``path``; or add its faults."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Kind):
    """One of some words or numbers."""

    values: tuple[Any, ...]

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        for one in self.values:  # any() would close a generator, and lose a Ctrl-C in it
            if type(value) is type(one) and value == one:
                return value
        faults.append(Fault(path, "value"))
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Scalar(Kind):
    """A number, a text, a truth value or nothing."""

    type: type
    limits: Field

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        if self.type is float and type(value) is int:
            try:
                value = float(value)
            except OverflowError:
                faults.append(Fault(path, "value"))
                return value
        fits = type(value) is self.type
        if fits and self.type is str:
            fits = self.limits.takes_text(value)
        elif fits and self.type in (int, float):
            fits = self.limits.takes(value)
        if not fits:
            faults.append(Fault(path, "value"))
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Listing(Kind):
    """A list of values of one kind, kept as a tuple."""

    item: Kind
    limits: Field

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        if not isinstance(value, (list, tuple)) or not self.limits.takes_length(len(value)):
            faults.append(Fault(path, "value"))
            return value
        return tuple(self.item.read(one, (*path, i), faults) for i, one in enumerate(value))


@dataclass(frozen=True, eq=False, repr=False)
class Mapping(Kind):
    """The keys of a model."""

    model: Model

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        return self.model.model_read(value, path, faults)

    @property
    def first_required(self) -> str | None:
        """The first key that a document must give."""
        for key, field in self.model.model_fields.items():
            if field.is_required():
                return key
        return None


class Named(dict[str, Any]):
    """Values by free names; not to be changed, so that models that have one can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


@dataclass(frozen=True, eq=False, repr=False)
class ByName(Kind):
    """A mapping of free names to values of one kind."""

    item: Kind

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            faults.append(Fault(path, "value"))
            return value
        return Named(
            {name: self.item.read(one, (*path, name), faults) for name, one in value.items()}
        )


class Anything(Kind):
    """Any value, kept as it is."""

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:  # noqa: ARG002
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Converted(Kind):
    """Values converted by a function."""

    kind: Kind
    by: Read

    @override
    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        wrong: list[Fault] = []
        if self.by.first:
            value = self._convert(value, path, wrong)
        if not wrong:
            value = self.kind.read(value, path, wrong)
        if not wrong and not self.by.first:
            value = self._convert(value, path, wrong)
        faults += wrong
        return value

    def _convert(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        try:
            return self.by.function(value)
        except ValueError as error:
            character = getattr(error, "character", None)
            faults.append(Fault(path, "rule", str(error), character))
            return value


@dataclass(frozen=True, eq=False, repr=False)
class Either(Kind):
    """Any of several kinds."""

    kinds: tuple[Kind, ...]

    def read(self, value: Any, path: KeyPath, faults: list[Fault]) -> Any:
        """Return the value to keep for ``value`` at ``path``; or add its faults.

        Among several kinds the faults of the intended one count: a mapping with a fault within, a
        text that fits but for a rule.
        """
        found: list[Fault] = []
        for kind in self._meant(value):
            wrong: list[Fault] = []
            read = kind.read(value, path, wrong)
            if not wrong:
                return read
            found += wrong
        nearer = [fault for fault in found if fault.kind == "rule" or fault.path != path]
        faults += nearer or [Fault(path, "value")]
        return value

    @property
    def by_key(self) -> dict[str, Kind]:
        """Models by the first key that each requires: a mapping is the one whose key it has.

        A model that is alone among its kinds, with several keys, is meant by every mapping.
        """
        models = [kind for kind in self.kinds if isinstance(kind, Mapping)]
        if len(models) == 1 and len(models[0].model.model_fields) > 1:
            return {}
        return {key: kind for kind in models if (key := kind.first_required) is not None}

    def _meant(self, value: Any) -> Sequence[Kind]:
        """Return the kinds that ``value`` may be; models by the key that it has, or the nearest."""
        by_key = self.by_key
        if not isinstance(value, dict) or not by_key:
            return self.kinds
        meant = [key for key in by_key if key in value]
        if not meant:
            from difflib import get_close_matches

            meant = [near for key in value for near in get_close_matches(str(key), by_key, 1)]
        return [by_key[key] for key in meant[:1]]


def kind_of(annotation: Any, limits: Field | None = None) -> Kind:
    """Return the kind of an annotation, with the limits of an ``Annotated`` around it.

    TypeError for annotations that no model has had so far.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *extras = get_args(annotation)
        for extra in extras:
            if isinstance(extra, Field):
                limits = extra
        kind = kind_of(inner, limits)
        for extra in extras:
            if isinstance(extra, Read):
                kind = Converted(kind, extra)
        return kind
    if origin is Literal:
        return Choice(get_args(annotation))
    if origin in (Union, UnionType):
        return Either(tuple(map(kind_of, get_args(annotation))))
    if origin is tuple:
        item, *others = get_args(annotation)
        if others == [...]:
            return Listing(kind_of(item), limits or Field())
        if set(others) == {item}:
            number = 1 + len(others)
            return Listing(kind_of(item), Field(min_length=number, max_length=number))
    if origin is dict and get_args(annotation)[0] is str:
        return ByName(kind_of(get_args(annotation)[1]))
    if annotation is Any:
        return Anything()
    if annotation is None:
        annotation = NoneType
    if annotation in (bool, int, float, str, NoneType):
        return Scalar(annotation, limits or Field())
    if isinstance(annotation, type) and hasattr(annotation, "model_read"):
        return Mapping(cast("Model", annotation))
    raise TypeError(f"{annotation} says nothing that can be checked: add a kind for it")
