"""The interface of tuning to a kernel family; the registry of designs names the object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.bench.workload import LARGEST_SIZE
from fa4gen.designs import registry
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction


class Family(ABC):
    """The problems of a family, the differences between candidates, and their time."""

    name: ClassVar[str]
    """The config key ``kernel``."""
    columns: ClassVar[tuple[str, ...]]
    """The extents of a problem, as columns of files call them.

    Those that ``problem`` has a default for may be left out.
    """
    axes: ClassVar[tuple[str, ...]]
    """The extent along which regions of a table divide problems, and those that go with it."""
    tuning_keys: ClassVar[frozenset[str]]
    """Keys that change the speed, never the function."""
    alike: ClassVar[float]
    """Predicted times within this factor are equal: the kernel that exists is preferred.

    It is about the accuracy of the model's order.
    """
    arrays: ClassVar[tuple[str, str]]
    """The first two arguments of a call, whose shapes determine the problem."""

    @abstractmethod
    def parse_problem(self, text: str) -> Any:
        """Read a problem as the command line has it; ConfigError for anything else."""

    @abstractmethod
    def problem(self, extents: Mapping[str, int]) -> Any:
        """Return the problem of ``extents``, by the names of ``columns``; ConfigError."""

    @abstractmethod
    def word(self, problem: Any) -> str:
        """Write a problem as ``parse_problem`` reads it."""

    @abstractmethod
    def flop(self, plan: Any, problem: Any) -> float:
        """Return the floating-point operations that a problem counts as."""

    @abstractmethod
    def refuse_problem(self, plan: Any, problem: Any) -> None:
        """Raise ConfigError for a problem whose contiguous arrays ``plan``'s kernels do not take.

        Such arrays are timed; a call may have others, with padded rows.
        """

    @abstractmethod
    def array_bytes(self, plan: Any, problem: Any) -> int:
        """Return the bytes of all arrays of a call."""

    @abstractmethod
    def doubt(self, plan: Any, problem: Any) -> str:
        """Return a question about extents that look like those of something else; "" for none."""

    @abstractmethod
    def predict(self, plan: Any, problem: Any, chip: Chip) -> Prediction:
        """Return the time that a launch of ``plan``'s kernel should take."""

    @abstractmethod
    def problem_of_call(self, plan: Any, key: Any) -> Any:
        """Return the problem of a call, from its key; ArgumentError for shapes that are none."""

    def extents(self, problem: Any) -> dict[str, int]:
        """Return the extents of a problem, by the names of ``columns``."""
        return {name: getattr(problem, name) for name in self.columns}

    def call_extents(self, plan: Any, problem: Any) -> dict[str, int]:
        """Return the extents by which a call of ``plan``'s kernel is known: its arrays' shapes."""
        del plan
        return self.extents(problem)

    def details(self, problem: Any) -> str:
        """Return the part of a problem that its word does not show; "" for none."""
        del problem
        return ""

    def bench_size(self, problem: Any) -> Any:
        """Return the problem as ``prepare`` of bench's timer takes it."""
        return problem

    def refuse(self, plan: Any) -> None:
        """Raise ConfigError for a kernel whose time the cost model cannot predict."""
        del plan

    def refuse_set(self, plan: Any) -> None:
        """Raise ConfigError for a kernel that no set picks by the shapes of a call."""
        self.refuse(plan)

    def takes(self, plan: Any, problem: Any) -> bool:
        """Whether ``plan``'s kernel computes the problem."""
        del plan, problem
        return True

    def suits(self, plan: Any, problem: Any) -> bool:
        """Whether the model may choose ``plan``'s kernel for the problem."""
        return self.takes(plan, problem)

    def is_refined(self, plan: Any, refined: Any) -> bool:
        """Whether a plan with such changes may be faster than the one without."""
        del plan, refined
        return True

    def call_key(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Return the shapes of a call's arrays and their layout, hashable.

        Calls of one key are one problem. Called for every launch: attribute look-ups only.
        ArgumentError where an array is missing.
        """
        layout = options.get("layout", "bshd")
        try:
            return arguments[0].shape, arguments[1].shape, layout
        except (IndexError, AttributeError):
            first, second = (
                _named_shape(name, arguments[number : number + 1], options)
                for number, name in enumerate(self.arrays)
            )
            return first, second, layout

    def read_extents(self, given: Mapping[str, Any], defaults: Mapping[str, int]) -> dict[str, int]:
        """Return a whole number for each of ``columns``.

        Raises ConfigError, with all problems, for one that is missing without a default, is
        unknown, or is out of range.
        """
        names = ", ".join(self.columns)
        problems = [
            Problem(f"{name!r} is not an extent", f"The extents are {names}.")
            for name in given
            if name not in self.columns
        ]
        found: dict[str, int] = {}
        for name in self.columns:
            value = given.get(name, defaults.get(name))
            if value is None:
                problems.append(Problem(f"{name} is missing", f"Give {names}."))
            elif (
                isinstance(value, bool)
                or not isinstance(value, int)
                or not 1 <= value <= LARGEST_SIZE
            ):
                what = f"{name}: {value!r} is not a whole number from 1 to {LARGEST_SIZE}"
                problems.append(Problem(what, key=name))
            else:
                found[name] = value
        if problems:
            raise ConfigError(*problems)
        return found


def _named_shape(name: str, given: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an array that is given by place or by name; ArgumentError."""
    from fa4gen.runtime import arrays
    from fa4gen.runtime.refusal import refusal

    array = given[0] if given else options.get(name)
    if array is None:
        raise refusal(name, "nothing", "an array")
    shape = getattr(array, "shape", None)
    return tuple(arrays.view(name, array)[0].shape if shape is None else shape)


def family_of(plan: Plan) -> Family:
    """Return the family of a plan."""
    return family_called(registry.family_of(plan).name)


def family_called(name: str) -> Family:
    """Return the family called ``name``; KeyError when there is none."""
    family: Family = registry.FAMILIES[name].part("tune")
    return family
