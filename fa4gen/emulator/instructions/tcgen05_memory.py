"""Tensor memory: allocation, loads and stores, waits and fences (PTX ISA, "tcgen05")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.instructions import tcgen05_allocation, tcgen05_transfer
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.waiting import MakeEnd

TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "tcgen05.dealloc": tcgen05_allocation.dealloc,
    "tcgen05.relinquish_alloc_permit": tcgen05_allocation.relinquish,
    "tcgen05.ld": tcgen05_transfer.load,
    "tcgen05.st": tcgen05_transfer.store,
    "tcgen05.wait::ld": tcgen05_transfer.wait_load,
    "tcgen05.wait::st": tcgen05_transfer.wait_store,
    "tcgen05.fence::before_thread_sync": tcgen05_transfer.fence,
    "tcgen05.fence::after_thread_sync": tcgen05_transfer.fence,
}

ENDS: Final[Mapping[str, MakeEnd]] = {"tcgen05.alloc": tcgen05_allocation.make_alloc}
