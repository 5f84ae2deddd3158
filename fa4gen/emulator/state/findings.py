"""Findings of a launch under way, with words for the threads that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from fa4gen.emulator.report import FindingLog, Severity, Text

if TYPE_CHECKING:
    from fa4gen.emulator.names import Names
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.registers import Mask, Registers


class Stop(Exception):  # noqa: N818 (not an error of the program)
    """The launch cannot go on; the finding that says why has been recorded."""


class Findings:
    """The findings so far, in ``log``."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.log = FindingLog()
        self._remarked: set[tuple[str, Instruction]] = set()

    def find(
        self,
        kind: str,
        message: Text,
        site: Instruction,
        wg: Registers,
        mask: Mask,
        severity: Severity = Severity.ERROR,
        *,
        earlier: Instruction | None = None,
    ) -> None:
        """Record that something is wrong, and go on.

        ``earlier`` is the other instruction where two are at odds. A message that takes work to
        make may come as a function: it is called for the first finding of its group only.
        """
        self.log.add(
            kind,
            severity,
            message,
            site,
            lambda: self.who(wg, mask),
            earlier=earlier,
            cta=wg.cta_index,
        )

    def remark(
        self,
        kind: str,
        message: str,
        site: Instruction,
        wg: Registers,
        mask: Mask,
        severity: Severity = Severity.REVIEW,
    ) -> None:
        """Record a habit of the code: once for each kind and instruction."""
        if (kind, site) not in self._remarked:
            self._remarked.add((kind, site))
            self.find(kind, message, site, wg, mask, severity)

    def fault(
        self, kind: str, message: str, site: Instruction, wg: Registers, mask: Mask
    ) -> NoReturn:
        """Record an error after which the kernel could not go on, and stop the launch."""
        self.find(kind, message, site, wg, mask)
        raise Stop(kind)

    def who(self, wg: Registers, mask: Mask) -> str:
        """Threads for people, with their role if it has a name."""
        lanes = wg.lanes_of(mask)
        first, last = wg.thread(int(lanes[0])), wg.thread(int(lanes[-1]))
        role = self.names.of_threads(first, last)
        text = wg.describe(mask)
        return f"{role} ({text})" if role else text


class Threads:
    """Threads in words that are made only for a reader; see ``Findings.who``."""

    __slots__ = ("_findings", "_mask", "_registers")

    def __init__(self, findings: Findings, registers: Registers, mask: Mask) -> None:
        self._findings = findings
        self._registers = registers
        self._mask = mask

    def __str__(self) -> str:
        return self._findings.who(self._registers, self._mask)
