"""Accesses to tensor memory, and the findings about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fa4gen.emulator.checks.order.clocks import Vector
from fa4gen.emulator.checks.order.scopes import narrow_scope
from fa4gen.emulator.checks.tensor_memory.areas import Entry
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask


class TensorFindings:
    """Reports for the tensor memory of one CTA."""

    def __init__(self, threads: ClusterThreads, options: CheckOptions) -> None:
        self.threads = threads
        self.options = options

    def _race(
        self,
        entry: Entry,
        what: str,
        site: Instruction,
        wg: Warpgroup,
        mask: Mask,
        kind: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        if not self.options.tensor_memory:
            return
        if kind == "free" and severity is Severity.ISA:
            lacking = "which only relaxed synchronisation orders"
        elif entry.op is not None:
            lacking = "which nothing has shown to be complete"
        else:
            lacking = "and nothing orders the two"
        self.threads.sites.find(
            "tensor-memory" if kind == "free" else "race",
            lambda: f"{self._name(entry)} {what} after {self._earlier(entry)}, {lacking}",
            site,
            wg,
            mask,
            severity,
            entry.site,
        )

    def _narrow(
        self, entry: Entry, what: str, site: Instruction, wg: Warpgroup, mask: Mask
    ) -> None:
        """An access that is complete, and is ordered but for the scope of an arrival or a wait."""
        if not self.options.tensor_memory:
            return
        assert entry.ids is not None
        slot, epoch = int(entry.ids[0]), int(entry.ended[0])
        why, severity = narrow_scope(self.threads, wg.cta, slot, epoch, stored=False)
        self.threads.sites.find(
            "race",
            lambda: f"{self._name(entry)} {what}, ordered after {self._earlier(entry)} {why}",
            site,
            wg,
            mask,
            severity,
            entry.site,
        )

    def _one_lane(
        self, entry: Entry, what: str, site: Instruction, wg: Warpgroup, mask: Mask
    ) -> None:
        """An access that is complete, and that some lanes of its warp released for the others."""
        if not self.options.tensor_memory:
            return
        wait = "tcgen05.wait::st" if entry.writes else "tcgen05.wait::ld"
        self.threads.sites.find(
            "race",
            lambda: (
                f"{self._name(entry)} {what} after {self._earlier(entry)}, which not all lanes "
                f"have released (but {wait} is one operation of the warp)"
            ),
            site,
            wg,
            mask,
            Severity.ISA,
            entry.site,
        )

    def _over(self, entry: Entry, released: Vector) -> bool:
        """Whether lanes had needed their loaded values when they released them, in these epochs."""
        loads = self.threads.watched_loads()
        load = self.threads.sites.get(entry.site).instruction
        assert entry.ids is not None
        known = np.zeros(self.threads.clocks.threads, np.uint32)
        known[entry.ids] = released
        return not any(loads.is_open(load, thread, known) for thread in entry.ids.tolist())

    def _fed(self, entry: Entry, site: Instruction) -> bool:
        """Whether an instruction of the same warp needs what the entry loads, or comes later."""
        if entry.writes:
            return False
        load = self.threads.sites.get(entry.site).instruction
        return not self.threads.watched_loads().pending.is_open(load, site)

    def _unwaited(
        self, entry: Entry, what: str, site: Instruction, wg: Warpgroup, mask: Mask, *, over: bool
    ) -> None:
        """An access that no wait has shown to be complete; ``over``: its value was needed since."""
        if not self.options.tensor_memory:
            return
        wait = "tcgen05.wait::st" if entry.writes else "tcgen05.wait::ld"
        self.threads.sites.find(
            "missing-tcgen05-wait",
            lambda: (
                f"{self._name(entry)} {what} after {self._earlier(entry)}, "
                f"which executed no {wait} in between"
                + (" (but needed what it loaded)" if over else "")
            ),
            site,
            wg,
            mask,
            Severity.ISA if over else Severity.ERROR,
            entry.site,
        )

    def _unfenced(
        self, entry: Entry, what: str, site: Instruction, wg: Warpgroup, mask: Mask
    ) -> None:
        if self.options.tcgen05_fences != "canonical":
            return
        self.threads.sites.find(
            "missing-tcgen05-fence",
            lambda: (
                f"{self._name(entry)} {what} after {self._earlier(entry)} "
                "without tcgen05.fence::before_thread_sync there (a commit implies it) and "
                "::after_thread_sync here"
            ),
            site,
            wg,
            mask,
            Severity.REVIEW,
            entry.site,
        )

    def _name(self, entry: Entry) -> str:
        first, last, left, right = entry.rectangle
        return f"tensor memory (lanes {first}-{last - 1}, columns {left}-{right - 1})"

    def _earlier(self, entry: Entry) -> str:
        who = self.threads.who(int(entry.ids[0])) if entry.ids is not None else ""
        if who:
            who = f"the warp of {who}"
        return self.threads.sites.earlier(entry.site, who)
