"""The candidates of a compile walk: values for keys that the config leaves to the plan.

No rule says what a compiler makes of a kernel. A design lists candidates, the one that was measured
to be fastest first; the first that compiles clean is taken (``toolchain.choose``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.registry import validated
from fa4gen.strict import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.kernel_config import KernelConfig

Changes = dict[str, object]
"""Config keys with values, as they would be written in YAML."""

FEATURES: tuple[Changes, ...] = (
    {"split_keys": "auto"},
    {"page_size": 64},
    {"page_size": 128},
    {"lse": True},
    {"lse": False},
    {"sinks": False},
    {"promote_every": "never"},
    {"batching": "dense", "keys": "auto", "key_lengths": False, "page_size": None},
    {"mask": "causal"},
    {"mask": "causal", "parameters": None},
    {"mask": "none"},
    {"score": None},
    {"score": None, "parameters": None},
    {"activation": None},
)
"""Changes that may make room when no tile does, with another result: offered, never taken."""


def left_to_plan(config: KernelConfig, changes: Mapping[str, object]) -> Changes:
    """Return ``changes`` without the keys that ``config`` sets."""
    return {key: value for key, value in changes.items() if getattr(config, key, None) == "auto"}


def given_keys(config: KernelConfig, keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``keys`` that ``config`` gives a value other than auto."""
    given = config.model_fields_set
    return tuple(key for key in keys if key in given and getattr(config, key) != "auto")


def relaxations(config: KernelConfig, keys: Iterable[str]) -> tuple[list[Changes], ...]:
    """Return kinds of changes after which more may fit; a later kind changes more.

    ``keys``: those that candidates give values. First each that the config gives is left to the
    plan, then all of them together, then something else is computed, and last both.
    """
    given, data = given_keys(config, keys), config.data()
    left: Changes = dict.fromkeys(given, "auto")
    features = [
        changes
        for changes in FEATURES
        if changes.keys() <= data.keys() and any(data[key] != changes[key] for key in changes)
    ]
    return (
        [{key: "auto"} for key in given],
        [left] if len(given) > 1 else [],
        features,
        [{**left, **changes} for changes in features if given],
    )


def changed(config: KernelConfig, changes: Mapping[str, object]) -> KernelConfig:
    """Return ``config`` as it would be with ``changes`` written into it; ModelError.

    It may be another design's then.
    """
    return validated({**config.data(only_given=True), **changes})


def is_valid(config: KernelConfig, changes: Mapping[str, object]) -> bool:
    """Whether ``changes`` set only keys that are auto, to values that the model allows."""
    if left_to_plan(config, changes) != dict(changes):
        return False
    try:
        changed(config, changes)
    except ModelError:
        return False
    return True
