"""The choice of checks to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

from fa4gen.emulator.errors import LaunchError

FenceLevel = Literal["canonical", "acqrel", "off"]
_FENCE_LEVELS: Final[tuple[FenceLevel, ...]] = ("canonical", "acqrel", "off")


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """One switch per check.

    races          accesses to shared memory that nothing orders
    proxies        generic writes that the async proxy uses without ``fence.proxy.async``
    proxy_war      generic reads that the async proxy overwrites without one: an error where the
                   loads may be under way still, else ``isa`` or for review
    init_fence     mbarriers used from afar without ``fence.mbarrier_init``
    phase_lap      a wait that a later phase of its mbarrier can overtake, and an arrival that can
                   count in an earlier one
    uninitialised  shared or tensor memory that is read before anything was written
    tensor_memory  accesses to tensor memory that nothing orders; missing waits and commits
    tcgen05_fences ``canonical`` asks for ``tcgen05.fence`` as the PTX ISA does (review),
                   ``acqrel`` lets ordinary synchronisation do, ``off`` too
    early_exit     threads that leave while peers use their shared memory
    global_memory  accesses to global memory that nothing orders
    work           elements of outputs that nobody writes, cancelled clusters that nobody takes up
    """

    races: bool = True
    proxies: bool = True
    proxy_war: bool = True
    init_fence: bool = True
    phase_lap: bool = True
    uninitialised: bool = True
    tensor_memory: bool = True
    tcgen05_fences: FenceLevel = "canonical"
    early_exit: bool = True
    global_memory: bool = True
    work: bool = True

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names that ``parse`` accepts in a list."""
        return tuple(field.name for field in fields(CheckOptions))

    @staticmethod
    def none() -> CheckOptions:
        """Everything off."""
        return CheckOptions(
            races=False, proxies=False, proxy_war=False, init_fence=False, phase_lap=False,
            uninitialised=False, tensor_memory=False, tcgen05_fences="off", early_exit=False,
            global_memory=False, work=False,
        )  # fmt: skip

    @staticmethod
    def parse(value: bool | Iterable[str] | CheckOptions) -> CheckOptions:
        """True: all; False: none; names: only those, ``tcgen05_fences=acqrel`` with a level.

        A name may be written with hyphens. Raises LaunchError for an unknown check.
        """
        if isinstance(value, CheckOptions):
            return value
        if isinstance(value, bool):
            return CheckOptions() if value else CheckOptions.none()
        options = CheckOptions.none()
        for word in [value] if isinstance(value, str) else value:
            name, _, level = word.replace("-", "_").partition("=")
            if name not in CheckOptions.names() or (level and name != "tcgen05_fences"):
                raise LaunchError(
                    f"{word!r} is no check; there are {', '.join(CheckOptions.names())}"
                )
            if name == "tcgen05_fences":
                options = replace(options, tcgen05_fences=_fence_level(level or "canonical"))
            else:
                switch: Any = {name: True}
                options = replace(options, **switch)
        return options

    def any(self) -> bool:
        """Whether a check is on."""
        return self != replace(CheckOptions.none(), tcgen05_fences=self.tcgen05_fences) or (
            self.tcgen05_fences == "canonical"
        )


def _fence_level(word: str) -> FenceLevel:
    for level in _FENCE_LEVELS:
        if word == level:
            return level
    raise LaunchError(f"tcgen05_fences is one of {', '.join(_FENCE_LEVELS)}, not {word!r}")
