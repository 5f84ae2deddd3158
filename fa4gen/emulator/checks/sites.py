"""Sites of accesses as small numbers that shadow memory can hold, and their words for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.report import Severity, Text

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Cta, Machine, Warpgroup
    from fa4gen.emulator.state.registers import Mask

COMMIT: Final = "tcgen05.commit"
"""The kind of commits; those of one thread complete in order."""
_STRONG = frozenset(("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"))


@dataclass(frozen=True, slots=True)
class Site:
    """An access of a static instruction.

    ``issuer`` is the thread of an asynchronous operation, "" for generic accesses: shadow memory
    has their thread.
    """

    what: str
    instruction: Instruction
    issuer: str
    atomic: bool
    reach: int
    """The threads with whose accesses it is atomic: see ``reach_of``."""


def reach_of(site: Instruction) -> int:
    """Return the scope of a strong access: 0 for its CTA, 1 for its cluster, 2 for the GPU."""
    words = site.modifiers
    return 0 if "cta" in words else 1 if "cluster" in words else 2


def is_strong(site: Instruction) -> bool:
    """Whether an access is atomic, relaxed or stronger: such accesses do not race."""
    return site.opcode in ("atom", "red", "multimem") or not _STRONG.isdisjoint(site.modifiers)


def is_reduction(op: AsyncOp) -> bool:
    """Whether an operation updates memory: updates do not race with each other."""
    return "reduc" in op.kind or bool(op.notes.get("atomic"))


class Sites:
    """Numbers for sites; 0 stands for none."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._numbers: dict[tuple[int, int, str], int] = {}
        self._known: list[Site | None] = [None]

    def generic(self, instruction: Instruction, kind: str) -> int:
        """The number of a generic access."""
        key = (id(instruction), -1, kind)
        number = self._numbers.get(key)
        if number is None:
            made = Site(kind, instruction, "", kind == "atomic", reach_of(instruction))
            number = self._add(key, made)
        return number

    def operation(self, op: AsyncOp) -> int:
        """The number of an asynchronous operation's instruction and issuer."""
        key = (id(op.site), id(op.wg) * 128 + op.lane, op.kind)
        number = self._numbers.get(key)
        if number is None:
            wg = op.wg
            thread = wg.thread(op.lane)
            issuer = person(self.machine, wg.cta, thread)
            number = self._add(key, Site(op.kind, op.site, issuer, is_reduction(op), 2))
        return number

    def get(self, number: int) -> Site:
        """The site of a number."""
        site = self._known[number]
        assert site is not None
        return site

    def is_atomic(self, number: int) -> bool:
        site = self._known[number]
        return site is not None and site.atomic

    def _add(self, key: tuple[int, int, str], site: Site) -> int:
        self._known.append(site)
        self._numbers[key] = len(self._known) - 1
        return len(self._known) - 1

    # ---- words

    def earlier(self, number: int, who: str) -> str:
        """An earlier access: ``the write by thread 5 at kernel.cu:12``."""
        site = self.get(number)
        where = site.instruction.position
        if site.issuer:
            return f"the {site.what} issued by {site.issuer} at {where}"
        return f"the {site.what} by {who} at {where}"

    def find(
        self,
        kind: str,
        message: Text,
        site: Instruction,
        wg: Warpgroup,
        mask: Mask,
        severity: Severity = Severity.ERROR,
        earlier: int = 0,
    ) -> None:
        """Record a finding; ``earlier`` is the number of the other access, if one is known."""
        other = self.get(earlier).instruction if earlier > 0 else None
        self.machine.find(kind, message, site, wg, mask, severity, earlier=other)


def person(machine: Machine, cta: Cta, thread: int) -> str:
    """A thread of a CTA."""
    role = machine.names.of_threads(thread, thread)
    text = f"thread {thread} of {cta.label}"
    return f"{role} ({text})" if role else text


def place(cta: Cta, start: int, stop: int) -> str:
    """Bytes of shared memory."""
    return f"{cta.name_of(start)} (shared bytes {start}-{stop - 1})"
