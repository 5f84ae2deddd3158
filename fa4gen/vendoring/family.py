"""The protocol of a kernel family in vendoring; the registry of designs names the objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fa4gen.designs import registry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.vendoring.binding import Args
    from fa4gen.vendoring.launcher_facts import LauncherFacts
    from fa4gen.vendoring.selftest_facts import SelftestFacts


class Family(Protocol):
    """Facts for the C templates, and calls of the C interface."""

    IN_EVERY_FOLDER: bool
    """Whether folders without such kernels have the family's struct and functions, too."""

    def refuse(self, plan: Any) -> None:
        """Raise ConfigError for a kernel that the C launcher cannot call."""

    def launcher_facts(self, plan: Any, facts: LauncherFacts) -> LauncherFacts:
        """Return ``facts``, which every family has, with those of this one."""

    def selftest_facts(self, plan: Any) -> SelftestFacts:
        """Return the facts of a kernel for the self-test."""

    def case_args(self, plan: Any, views: Mapping[str, TensorView], memory: Any) -> Args:
        """Return the arguments of a call with the tensors of one of verify's cases."""

    def peer_args(
        self, plan: Any, views: Mapping[str, TensorView], *, alpha: float, beta: float
    ) -> Args:
        """Return the arguments of a call for bench."""


def family_of(plan: Plan) -> Family:
    """Return the vendoring family of ``plan``."""
    family: Family = registry.family_of(plan).part("vendor")
    return family


def families_in_folder(own: Collection[str]) -> tuple[str, ...]:
    """Return the families that have C functions in a folder with kernels of those named ``own``."""
    return tuple(
        row.name
        for row in registry.FAMILIES.values()
        if row.vendor is not None and (row.name in own or row.part("vendor").IN_EVERY_FOLDER)
    )
