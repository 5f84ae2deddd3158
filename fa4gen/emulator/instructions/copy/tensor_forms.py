"""The forms of tensor copies, decoded from their modifiers and operands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fa4gen.emulator.ptx.syntax import Address, Instruction, Symbol, Vector
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.translate.emit import Emitter, Reader

_WIDE: Final = ("im2col::w", "im2col::w::128")
_ROWS: Final = 4  # of tile::gather4 and tile::scatter4
COMPLETES: Final = "mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers: rank, state spaces in order, everything else; and the operands."""

    rank: int
    spaces: tuple[str, ...]
    words: frozenset[str]

    @property
    def rows(self) -> bool:
        """Four rows instead of a box."""
        return bool(self.words & {"tile::gather4", "tile::scatter4"})

    @property
    def pixels(self) -> bool:
        """Pixels of an im2col map instead of a box."""
        return bool(self.words & {"im2col", "im2col_no_offs"})

    @property
    def offsets(self) -> int:
        """The number of im2col offsets of the instruction."""
        return self.rank - 2 if "im2col" in self.words else 0


@dataclass(frozen=True, slots=True)
class MapOperand:
    """``[map, {coordinates}]``: readers of its parts, and of im2col offsets behind coordinates."""

    address: Reader
    coordinates: tuple[Reader, ...]

    def rows(self, wg: Warpgroup) -> tuple[Any, list[Any]]:
        return self.address(wg), [read(wg) for read in self.coordinates]


def read_form(i: Instruction, e: Emitter, start: str, allowed: tuple[str, ...]) -> Form:
    """Sort the modifiers after ``start``; ``allowed`` are those of this instruction."""
    words = i.modifiers[i.modifiers.index(start) + 1 :]
    rank, spaces, rest = 0, [], []
    for word in words:
        if re.fullmatch("[1-5]d", word) and not rank:
            rank = int(word[0])
        elif word in ("global", "shared::cta", "shared::cluster"):
            spaces.append(word)
        elif word in allowed or word in ("tile", "L2::cache_hint"):
            rest.append(word)
        elif word in _WIDE:
            raise e.refuse(
                f"where the pixels of .{word} and their halo go: the PTX ISA says that in figures "
                "only, and no tensor map for it was seen"
            )
        else:
            raise e.refuse(f".{word}")
    if not rank:
        raise e.refuse("no dimension")
    if len(set(rest)) != len(rest) or {"cta_group::1", "cta_group::2"} <= set(rest):
        raise e.refuse("modifiers that exclude each other")
    form = Form(rank, tuple(spaces), frozenset(rest))
    if form.rows and rank != 2:
        raise e.refuse("rows of a map that is not two-dimensional")
    if form.pixels and (rank < 3 or form.rows or "tile" in rest):
        raise e.refuse("im2col with fewer than three dimensions, or with .tile")
    return form


def map_operand(
    i: Instruction, e: Emitter, index: int, form: Form, offsets: int | None = None
) -> MapOperand:
    """Make readers of the operand at ``index``, and of im2col offsets at ``offsets``."""
    operand = i.operands[index]
    if not isinstance(operand, Address) or operand.coordinates is None:
        raise e.refuse("a tensor map and coordinates were expected")
    if isinstance(operand.base, Symbol) and operand.base.variable.space not in ("global", "const"):
        raise e.refuse("the tensor map is named by its generic address")
    count = 1 + _ROWS if form.rows else form.rank
    items = operand.coordinates.items
    if len(items) != count:
        raise e.refuse(f"{len(items)} coordinates instead of {count}")
    readers = [e.reader(item, "s32") for item in items]
    if offsets is not None and form.offsets:
        vector = i.operands[offsets]
        if not isinstance(vector, Vector) or len(vector.items) != form.offsets:
            raise e.refuse(f"{form.offsets} im2col offsets were expected")
        readers += [e.reader(item, "u16") for item in vector.items]
    return MapOperand(e.address(operand), tuple(readers))


def check_count(i: Instruction, e: Emitter, expected: int) -> None:
    """Refuse another number of operands."""
    if len(i.operands) != expected:
        raise e.refuse(f"{len(i.operands)} operands instead of {expected}")
