"""Tensor memory: allocation, loads and stores, waits and fences (PTX ISA, "tcgen05")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fa4gen.emulator.instructions.tcgen05 import allocation, transfer
from fa4gen.emulator.translate.outcome import MakeWaiting
from fa4gen.emulator.translate.registry import Translate

TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "tcgen05.dealloc": allocation.dealloc,
    "tcgen05.relinquish_alloc_permit": allocation.relinquish,
    "tcgen05.ld": transfer.load,
    "tcgen05.st": transfer.store,
    "tcgen05.wait::ld": transfer.wait_load,
    "tcgen05.wait::st": transfer.wait_store,
    "tcgen05.fence::before_thread_sync": transfer.fence,
    "tcgen05.fence::after_thread_sync": transfer.fence,
}

WAITING: Final[Mapping[str, MakeWaiting]] = {"tcgen05.alloc": allocation.make_alloc}
