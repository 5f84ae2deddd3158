"""Modifiers and addresses of mbarrier instructions."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.machine import Cta, Warpgroup
from fa4gen.emulator.state.memory import SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.translate.emit import Emitter


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers of an mbarrier instruction."""

    cluster: bool
    order: str
    scope: str
    words: frozenset[str]

    @property
    def shared(self) -> bool:
        """Whether addresses are shared ones, not generic."""
        return "shared" in self.words


def parse_form(i: Instruction, e: Emitter, allowed: tuple[str, ...], default: str) -> Form:
    """Sort the modifiers after the operation's name; ``default`` is its memory order."""
    order, scope, cluster = default, "cta", False
    words = set()
    for word in i.modifiers[1:]:
        if word in ("release", "acquire", "relaxed"):
            order = word
        elif word in ("cta", "cluster"):
            scope = word
        elif word in ("shared", "shared::cta"):
            words.add("shared")
        elif word == "shared::cluster":
            words.add("shared")
            cluster = True
        elif word in allowed:
            words.add(word)
        elif word != "b64":
            raise e.refuse(f".{word}")
    if "shared" not in words:
        cluster = True
    return Form(cluster, order, scope, frozenset(words))


def locate(wg: Warpgroup, address: int, form: Form, site: Instruction) -> tuple[Cta, int]:
    """The CTA and offset of a barrier's address, shared or generic."""
    if "shared" not in form.words:
        if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
            wg.machine.fault(
                "out-of-bounds",
                f"generic address {address:#x} of an mbarrier is not in shared memory",
                site,
                wg,
                None,
            )
        address -= SHARED_WINDOW
    return wg.machine.shared_at(wg, address, site, form.cluster)
