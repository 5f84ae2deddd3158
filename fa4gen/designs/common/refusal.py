"""Refusing a config that cannot work: every fault with its arithmetic and suggested fixes.

A fix is tried before it is suggested: it removes its fault and brings no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.candidates import changed
from fa4gen.designs.registry import design_for
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fa4gen.designs.common.kernel_config import KernelConfig

_NO_CONFIG = "changes after which a rule of the model is broken"

Changes = Mapping[str, object]
"""Config keys with new values, as they would be written in YAML."""

MOST_STEPS = 3
"""Remedies that are suggested together, where each of them but the last brings another fault."""


@dataclass(frozen=True)
class Refusal:
    """A rule or a limit that a config breaks."""

    kind: str
    """The rule or limit: a config has at most one fault of a kind."""
    message: str
    """The arithmetic: needed and available."""
    keys: tuple[str, ...]
    """Config keys that it comes from, the one to change first in front."""
    remedies: tuple[Iterable[Changes], ...]
    """Kinds of fixes, each read once: the first changes of a kind are suggested after which the
    config has no fault, or else the first that remove this one."""
    last_resort: Iterable[Changes] = ()
    """Tried only when no remedy works; then each remedy together with those of what it brings."""


def faults_of(config: KernelConfig) -> Sequence[Refusal]:
    """Return everything in ``config`` that cannot work, as its design finds it.

    Planners refuse by this function: a fix may make a config another design's.
    """
    design = design_for(config)
    return design.find_faults(design.planner.load()(config))


def refuse_faults(
    config: KernelConfig,
    find_faults: Callable[[KernelConfig], Sequence[Refusal]] = faults_of,
    changed: Callable[[KernelConfig, Changes], KernelConfig] = changed,
) -> None:
    """Raise ConfigError with all that ``find_faults`` finds in ``config``, if anything.

    ``changed`` returns a config with changes written into it, or raises ModelError.
    """
    faults = find_faults(config)
    if not faults:
        return
    kinds = {fault.kind for fault in faults}
    left_after: dict[str, set[str]] = {}

    def left(changes: Changes) -> set[str]:
        tried = str(changes)
        if tried not in left_after:
            try:
                after = find_faults(changed(config, changes))
                left_after[tried] = {fault.kind for fault in after}
            except ModelError:  # other keys of the config do not go with the changes
                left_after[tried] = {_NO_CONFIG}
        return left_after[tried]

    def best(fault: Refusal, way: Iterable[Changes]) -> list[Changes]:
        helping = None
        for changes in way:
            if not left(changes):
                return [changes]
            if helping is None and left(changes) <= kinds - {fault.kind}:
                helping = changes
        return [] if helping is None else [helping]

    def problem(fault: Refusal) -> Problem:
        offers = [changes for way in fault.remedies for changes in best(fault, way)]
        offers = offers or best(fault, fault.last_resort)
        offers = offers or best(fault, _in_steps(config, fault.kind, kinds, find_faults, changed))
        return Problem(fault.message, in_words(offers), key=_key(config, fault))

    raise ConfigError(*map(problem, faults))


def _in_steps(
    config: KernelConfig,
    kind: str,
    known: set[str],
    find_faults: Callable[[KernelConfig], Sequence[Refusal]],
    changed: Callable[[KernelConfig, Changes], KernelConfig],
) -> Iterator[Changes]:
    """Yield remedies of the fault ``kind`` together with remedies of the faults that they bring.

    The fewest steps first; ``known``: the kinds of faults that are there without any change.
    """
    reached: list[Changes] = [{}]
    for _ in range(MOST_STEPS):
        before, reached = reached, []
        for changes in before:
            try:
                faults = find_faults(changed(config, changes))
            except ModelError:
                continue
            to_mend = [f for f in faults if f.kind == kind or f.kind not in known]
            ways = [way for fault in to_mend[:1] for way in fault.remedies]
            reached += [{**changes, **more} for way in ways for more in way]
        yield from reached


def in_words(offers: Sequence[Changes]) -> str:
    """Return "Set BN: 64; or BM: 128 and BN: 80."."""
    from fa4gen.yaml_words import listing, shown

    if not offers:
        return ""
    words = dict.fromkeys(
        listing([f"{key}: {shown(value)}" for key, value in changes.items()], "and")
        for changes in offers
    )
    return f"Set {'; or '.join(words)}."


def _key(config: KernelConfig, fault: Refusal) -> str:
    """Return the first key of the fault that the config gives a value."""
    written = (key for key in fault.keys if key in config.model_fields_set)
    return next((key for key in written if getattr(config, key) != "auto"), fault.keys[0])
