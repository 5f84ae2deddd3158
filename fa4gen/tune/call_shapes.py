"""The shapes of a call's arrays, however they are passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def named_shapes(
    names: Sequence[str], arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the arrays ``names``, the first arguments in this order or by name.

    Raises ArgumentError for one that is missing or is not an array.
    """
    from fa4gen.runtime import arrays
    from fa4gen.runtime.refusal import refusal

    found = []
    for number, name in enumerate(names):
        array = arguments[number] if number < len(arguments) else options.get(name)
        if array is None:
            raise refusal(name, "nothing", "an array")
        shape = getattr(array, "shape", None)
        found.append(tuple(arrays.view(name, array)[0].shape if shape is None else shape))
    return tuple(found)
