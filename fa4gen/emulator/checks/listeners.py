"""Several observers of one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from fa4gen.emulator.state.events import Events
from fa4gen.emulator.state.machine import Observer

_EVENTS: Final = tuple(
    name for name, member in vars(Events).items() if callable(member) and not name.startswith("_")
)


class Listeners(Observer):
    """Reports every event to each observer that handles it, in their order.

    An event has the result of the first of them that handles it. An event that only one handles
    is that observer's own method: it costs no more than with one observer.
    """

    def __init__(self, *observers: Observer) -> None:
        self.enabled = any(one.enabled for one in observers)
        for event in _EVENTS:
            handlers = [
                getattr(one, event)
                for one in observers
                if getattr(type(one), event) is not getattr(Events, event)
            ]
            if len(handlers) == 1:
                setattr(self, event, handlers[0])
            elif handlers:
                setattr(self, event, _in_turn(handlers))


def _in_turn(handlers: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Calls of all handlers; the result is that of the first."""
    first, *others = handlers

    def report(*args: Any, **options: Any) -> Any:
        result = first(*args, **options)
        for handler in others:
            handler(*args, **options)
        return result

    return report
