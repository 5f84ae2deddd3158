"""The interface of tuning to a kernel family; the registry of designs names the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.model.prediction import Prediction


class Family(Protocol):
    """The problems of a family, the differences between candidates, and their time."""

    @property
    def name(self) -> str:
        """The config key ``kernel``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The extents of a problem, as columns of files call them.

        Those that ``problem`` has a default for may be left out.
        """

    @property
    def axes(self) -> tuple[str, ...]:
        """The extent along which regions of a table divide problems, and those that go with it."""

    @property
    def tuning_keys(self) -> frozenset[str]:
        """Keys that change the speed, never the function."""

    @property
    def alike(self) -> float:
        """Predicted times within this factor are equal: the kernel that exists is preferred.

        It is about the accuracy of the model's order.
        """

    def parse_problem(self, text: str) -> Any:
        """Read a problem as the command line has it; ConfigError for anything else."""

    def problem(self, extents: Mapping[str, int]) -> Any:
        """Return the problem of ``extents``, by the names of ``columns``; ConfigError."""

    def extents(self, problem: Any) -> dict[str, int]:
        """Return the extents of a problem, by the names of ``columns``."""

    def word(self, problem: Any) -> str:
        """Write a problem as ``parse_problem`` reads it."""

    def bench_size(self, problem: Any) -> Any:
        """Return the problem as ``prepare`` of bench's timer takes it."""

    def flop(self, plan: Any, problem: Any) -> float:
        """Return the floating-point operations that a problem counts as."""

    def refuse(self, plan: Any) -> None:
        """Raise ConfigError for a kernel whose time the cost model cannot predict."""

    def refuse_set(self, plan: Any) -> None:
        """Raise ConfigError for a kernel that no set picks by the shapes of a call."""

    def refuse_problem(self, plan: Any, problem: Any) -> None:
        """Raise ConfigError for a problem whose contiguous arrays ``plan``'s kernels do not take.

        Such arrays are timed; a call may have others, with padded rows.
        """

    def array_bytes(self, plan: Any, problem: Any) -> int:
        """Return the bytes of all arrays of a call."""

    def doubt(self, plan: Any, problem: Any) -> str:
        """Return a question about extents that look like those of something else; "" for none."""

    def predict(self, plan: Any, problem: Any, chip: Chip) -> Prediction:
        """Return the time that a launch of ``plan``'s kernel should take."""

    def takes(self, plan: Any, problem: Any) -> bool:
        """Whether ``plan``'s kernel computes the problem."""

    def suits(self, plan: Any, problem: Any) -> bool:
        """Whether the model may choose ``plan``'s kernel for the problem."""

    def is_refined(self, plan: Any, refined: Any) -> bool:
        """Whether a plan with such changes may be faster than the one without."""

    def call_key(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Return the shapes of a call's arrays, hashable: calls of one key are one problem.

        Called for every launch: attribute look-ups only. ArgumentError where an array is missing.
        """

    def problem_of_call(self, plan: Any, key: Any) -> Any:
        """Return the problem of a call, from its key; ArgumentError for shapes that are none."""


def family_of(plan: Plan) -> Family:
    """Return the family of a plan."""
    return family_called(registry.family_of(plan).name)


def family_called(name: str) -> Family:
    """Return the family called ``name``; KeyError when there is none."""
    family: Family = registry.FAMILIES[name].tune.load()
    return family
