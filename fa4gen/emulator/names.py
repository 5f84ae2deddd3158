"""Names of buffers, barriers and threads of a kernel, for reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedRange:
    """Bytes of shared memory with a name; ``slot_bytes`` > 0 splits it into numbered slots.

    ``start`` and ``stop`` are relative to the start of dynamic shared memory (after alignment to
    ``align``), or to shared address 0 when ``absolute``.
    """

    name: str
    start: int
    stop: int
    slot_bytes: int = 0


@dataclass(frozen=True, slots=True)
class NamedThreads:
    """Threads ``first`` to ``last`` (exclusive) of every CTA and the role they play."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Names:
    """Names for one kernel. ``base_align``: dynamic shared memory is used from the next multiple.

    ``parameters`` are by place, "" for one without a name. Raises nothing: a place without a name
    is described by its offset.
    """

    shared: tuple[NamedRange, ...] = ()
    roles: tuple[NamedThreads, ...] = ()
    base_align: int = 1
    parameters: tuple[str, ...] = ()

    def of_offset(self, offset: int, dynamic_start: int) -> str | None:
        """The name of a shared offset, such as ``key_full[1]``."""
        base = -(-dynamic_start // self.base_align) * self.base_align
        at = offset - base
        for place in self.shared:
            if place.start <= at < place.stop:
                if place.slot_bytes:
                    return f"{place.name}[{(at - place.start) // place.slot_bytes}]"
                return place.name
        return None

    def of_parameter(self, index: int) -> str | None:
        """The name of the parameter at ``index``, if it has one."""
        return self.parameters[index] or None if index < len(self.parameters) else None

    def of_threads(self, first: int, last: int) -> str | None:
        """The role of threads ``first`` to ``last`` (inclusive), if they all share one."""
        for role in self.roles:
            if role.first <= first and last < role.last:
                return role.name
        return None
