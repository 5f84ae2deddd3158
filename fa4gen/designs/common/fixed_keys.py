"""Config keys that have one value that works in a design, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fa4gen.strict import Strict


@dataclass(frozen=True)
class FixedKey:
    """A key, and the values that a config may give it."""

    key: str
    values: tuple[object, ...]
    """What may be written, the value to offer in front."""
    because: str


def other_values(config: Strict, what: str, fixed: Iterable[FixedKey]) -> Iterator[Fault]:
    """Yield a fault for each key with another value; ``what``: the key and value that fix it."""
    for rule in fixed:
        given = getattr(config, rule.key)
        if given in rule.values:
            continue
        allowed = (
            " or ".join(yaml_word(value) for value in rule.values if value != "auto") or "auto"
        )
        yield Fault(
            kind=f"{rule.key} with {what}",
            message=f"{what} needs {rule.key}: {allowed}, got {yaml_word(given)}: {rule.because}",
            keys=(rule.key,),
            remedies=([{rule.key: rule.values[0]}],),
        )


def yaml_word(value: object) -> str:
    """Return a value as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
