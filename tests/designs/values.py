"""Values of keys, drawn from what their models allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.strict.kinds import Choice, Converted, Either, Mapping, Scalar

if TYPE_CHECKING:
    from fa4gen.strict.kinds import Kind


def some_values(kind: Kind) -> list[Any]:
    """A few values of a key, the smallest and the largest of a number."""
    match kind:
        case Choice(values=values):
            return list(values)
        case Scalar(type=python) if python is bool:
            return [False, True]
        case Scalar(type=python, limits=limits) if python in (int, float) and limits.le:
            step = limits.multiple_of or 1
            low, high = -(-(limits.ge or 0) // step) * step, limits.le // step * step
            return list(dict.fromkeys(map(python, (low, low + step, low + 2 * step, high))))
        case Either(kinds=kinds):
            return [value for one in kinds for value in some_values(one)]
        case Converted(kind=inner):
            return some_values(inner)
        case Mapping(model=model):
            parts = {key: some_values(field.kind) for key, field in model.model_fields.items()}
            count = max(map(len, parts.values()))
            return [
                {key: values[i % len(values)] for key, values in parts.items()}
                for i in range(count)
            ]
    return []
