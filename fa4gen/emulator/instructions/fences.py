"""Fences (PTX ISA, "membar/fence"). What they order is the observer's business alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

from fa4gen.emulator.emit import Emitter
from fa4gen.emulator.gang import Gang, Mask
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.ptx.syntax import Instruction

_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_KNOWN: Final = frozenset((
    *(f"membar.{scope}" for scope in ("cta", "gl", "sys")),
    *(f"fence.{scope}" for scope in _SCOPES),
    *(f"fence.{order}.{scope}" for order, scope in product(
        ("sc", "acq_rel", "acquire", "release"), _SCOPES)),
    "fence.proxy.alias", "fence.proxy.async", "fence.proxy.async.global",
    "fence.proxy.async.shared::cta", "fence.proxy.async.shared::cluster",
    *(f"fence.proxy.tensormap::generic.release.{scope}" for scope in _SCOPES),
    *(f"fence.proxy.tensormap::generic.acquire.{scope}" for scope in _SCOPES),
    "fence.mbarrier_init.release.cluster",
    "fence.acquire.sync_restrict::shared::cluster.cluster",
    "fence.release.sync_restrict::shared::cta.cluster",
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
))  # fmt: skip


def _fence(i: Instruction, e: Emitter) -> None:
    if i.text not in _KNOWN:
        raise e.refuse("")
    with_address = "tensormap::generic.acquire" in i.text
    if len(i.operands) != (2 if with_address else 0):
        raise e.refuse("the number of operands")

    def handler(gang: Gang, mask: Mask) -> None:
        gang.machine.observer.fence(gang, mask, i.text, i)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {"fence": _fence, "membar": _fence}
