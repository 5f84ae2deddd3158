"""Fences (PTX ISA, "membar", "fence"): their order of accesses is the checks' business.

Values need no fence here: all threads see stores at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

from fa4gen.emulator.ptx.syntax import Address, Immediate, Instruction
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask, as_row
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_MAP_BYTES: Final = 128
# the modifiers that may follow the opcode, joined by dots
_PLAIN: Final = frozenset(
    [
        *_SCOPES,
        *map(".".join, product(("sc", "acq_rel", "acquire", "release"), _SCOPES)),
        "acquire.sync_restrict::shared::cluster.cluster",
        "release.sync_restrict::shared::cta.cluster",
        "mbarrier_init.release.cluster",
        "proxy.alias",
        "proxy.async",
        "proxy.async.global",
        "proxy.async.shared::cta",
        "proxy.async.shared::cluster",
        "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "proxy.async::generic.release.sync_restrict::shared::cta.cluster",
        *(f"proxy.tensormap::generic.release.{scope}" for scope in _SCOPES),
    ]
)
_WITH_MAP: Final = frozenset(f"proxy.tensormap::generic.acquire.{scope}" for scope in _SCOPES)
_BARS: Final = frozenset(("cta", "gl", "sys", "proxy.alias"))


def _fence(i: Instruction, e: Emitter) -> None:
    words = ".".join(i.modifiers)
    maps: Reader | None = None
    if i.opcode == "fence" and words in _WITH_MAP:
        if len(i.operands) != 2 or not isinstance(i.operands[0], Address):
            raise e.refuse("an address and a size were expected")
        size = i.operands[1]
        if not isinstance(size, Immediate) or size.bits != _MAP_BYTES:
            raise e.refuse(f"the size is {_MAP_BYTES}")
        maps = e.address(i.operands[0])
    elif words not in (_PLAIN if i.opcode == "fence" else _BARS) or i.operands:
        raise e.refuse("modifiers or operands")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        observer = wg.machine.observer
        observer.fence(wg, mask, i.text, i)
        if maps is not None and observer.enabled:
            row = as_row(maps(wg), wg.lanes)
            observer.map_acquired(wg, mask, row if mask is None else row[mask])

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {"fence": _fence, "membar": _fence}
