"""The base class of models, and the rules between their keys."""

from __future__ import annotations

import inspect
import sys
from functools import cached_property
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_type_hints,
)

from fa4gen.strict.kinds import Fault, FixedKey, KeyPath, Kind, Named, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Rule = TypeVar("Rule", bound=Callable[[Any], None])

_REQUIRED = object()
_NONE_FIXED: tuple[FixedKey, ...] = ()


class ModelError(ValueError):
    """A document does not fit its model; ``faults`` has all that is wrong with it."""

    def __init__(self, model: str, faults: list[Fault]) -> None:
        places = (".".join(map(str, f.path)) or "as a whole" for f in faults)
        texts = (f.message or f"{f.kind}" for f in faults)
        lines = [f"{place}: {text}" for place, text in zip(places, texts, strict=True)]
        super().__init__("\n".join((f"no {model}:", *lines)))
        self.faults = tuple(faults)


class ModelField:
    """A key of a model."""

    def __init__(self, owner: type, name: str, written: Any) -> None:
        self._owner = owner
        self._written = written
        self._default = owner.__dict__.get(name, _REQUIRED)

    def is_required(self) -> bool:
        """Whether a document must give the key."""
        return self._default is _REQUIRED

    def get_default(self) -> Any:
        """Return the value of a key that is not given; None where it has to be."""
        return None if self.is_required() else self._default

    @cached_property
    def annotation(self) -> Any:
        """The annotation of the allowed values."""
        alone = SimpleNamespace(__annotations__={"": self._written})
        names = vars(sys.modules[self._owner.__module__])
        return get_type_hints(alone, names, include_extras=True)[""]

    @cached_property
    def kind(self) -> Kind:
        """The kind of the allowed values."""
        return kind_of(self.annotation)


class _Fields:
    """The keys of a model by name, those of the classes above it first; made when first asked."""

    def __get__(self, instance: object, owner: type[Strict]) -> Mapping[str, ModelField]:
        made: dict[str, ModelField] | None = owner.__dict__.get("_fields")
        if made is None:
            made = {}
            for kind in reversed(owner.__mro__):
                if kind is not Strict and issubclass(kind, Strict):
                    for name, written in inspect.get_annotations(kind).items():
                        made[name] = ModelField(kind, name, written)
            owner._fields = made
        return made


def rule(method: Rule) -> Rule:
    """Mark a method that raises ValueError, with the reason, for keys that do not go together."""
    method.is_rule = True  # type: ignore[attr-defined]
    return method


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Strict:
    """A model: its annotations are keys. Refuses unknown keys and silent conversions."""

    __slots__ = ("__dict__", "_given")

    WHAT = ""
    """The model in messages about its fixed keys."""
    FIXED = _NONE_FIXED
    """Keys without a field of their own."""

    model_fields = _Fields()
    _fields: ClassVar[dict[str, ModelField]]
    _rules: ClassVar[tuple[Callable[[Any], None], ...]] = ()
    _given: frozenset[str]

    def __init_subclass__(cls) -> None:
        own = (value for value in vars(cls).values() if getattr(value, "is_rule", False))
        cls._rules = (*cls._rules, *own)

    def __init__(self, **keys: Any) -> None:
        """Make one of its keys; ModelError."""
        faults: list[Fault] = []
        self._fill(keys, (), faults)
        if faults:
            raise ModelError(type(self).__name__, faults)

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """Return the object that ``data``, a mapping of keys, describes; ModelError."""
        faults: list[Fault] = []
        made = cls.model_read(data, (), faults)
        if faults:
            raise ModelError(cls.__name__, faults)
        return cast("Self", made)

    @classmethod
    def model_read(cls, data: Any, path: KeyPath, faults: list[Fault]) -> Any:
        """Return the object of ``data`` at ``path``; or add its faults."""
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            faults.append(Fault(path, "value"))
            return data
        made = cls.__new__(cls)
        made._fill(data, path, faults)
        return made

    def _fill(self, data: Mapping[Any, Any], path: KeyPath, faults: list[Fault]) -> None:
        before = len(faults)
        fields = self.model_fields
        values = self.__dict__
        for name, field in fields.items():
            if name in data:
                values[name] = field.kind.read(data[name], (*path, name), faults)
            elif field.is_required():
                faults.append(Fault((*path, name), "missing"))
            else:
                values[name] = field.get_default()
        others = [key for key in data if key not in fields]
        if others:
            faults += self._refused(others, data, path)
        object.__setattr__(self, "_given", frozenset(data).difference(others))
        if len(faults) > before:
            return
        try:
            for check in self._rules:
                check(self)
        except ValueError as error:
            character = getattr(error, "character", None)
            faults.append(Fault(path, "rule", str(error), character))

    @classmethod
    def _refused(
        cls, keys: Iterable[str], data: Mapping[Any, Any], path: KeyPath
    ) -> Iterator[Fault]:
        """Yield a fault for each of ``keys``, which have no field, but for fixed values."""
        fixed = {row.key: row for row in cls.FIXED}
        for key in keys:
            row = fixed.get(key)
            if row is None:
                yield Fault((*path, key), "unknown")
            elif not row.takes(data[key]):
                words = " or ".join(map(_word, row.decided))
                needs = f"needs {key}: {words}" if words else f"has no {key}"
                message = f"{cls.WHAT} {needs}, got {_word(data[key])}: {row.because}"
                remedy = f"Set {key}: {_word(row.values[0])}, or remove it."
                yield Fault((*path, key), "fixed", message, remedy=remedy)

    @property
    def model_fields_set(self) -> frozenset[str]:
        """The keys that were given."""
        return self._given

    def data(self, *, only_given: bool = False, only_changed: bool = False) -> dict[str, Any]:
        """Return the keys and their values, models within them as mappings, too.

        ``only_given``: without keys that were not given; ``only_changed``: without keys that have
        their default.
        """
        found: dict[str, Any] = {}
        for key, field in self.model_fields.items():
            value = getattr(self, key)
            if only_given and key not in self._given:
                continue
            if only_changed and not field.is_required() and value == field.get_default():
                continue
            found[key] = _plain(value, only_given=only_given, only_changed=only_changed)
        return found

    def changed(self, **keys: Any) -> Self:
        """Return a copy with other values of ``keys``; ModelError."""
        given = {key: value for key, value in vars(self).items() if key in self._given}
        return type(self)(**{**given, **keys})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be removed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        keys = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({keys})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).model_validate, (self.data(only_given=True),)


def _plain(value: Any, **within: bool) -> Any:
    """Return ``value`` with the models in it as mappings; see ``Strict.data``."""
    if isinstance(value, Strict):
        return value.data(**within)
    if isinstance(value, tuple):
        return tuple([_plain(one, **within) for one in value])
    if isinstance(value, Named):
        return {name: _plain(one, **within) for name, one in value.items()}
    return value


def _word(value: object) -> str:
    from fa4gen.yaml_words import shown  # for messages alone

    return shown(value)
