"""The forms of tcgen05.mma, decoded from modifiers and operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.instructions.tcgen05 import instruction_descriptor
from fa4gen.emulator.instructions.tcgen05.common import cta_group
from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import BLOCK_SCALED
from fa4gen.emulator.instructions.tcgen05.scales import factors
from fa4gen.emulator.ptx.syntax import Address, Immediate, Instruction, Vector
from fa4gen.emulator.translate.emit import Emitter, Reader

_SCALED_INPUT: Final = ("f16", "tf32")
_HINTS: Final = ("fill", "use", "lastuse", "discard")
_MAX_SHIFT: Final = 15
# of a zero-column mask: whether it has ones at all, and by how many columns it is shifted
_MASKS_COLUMNS: Final = 1 << 39
_COLUMN_SHIFT: Final = 0x3F << 56


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers; ``factors`` are block scale factors of each row, 0 without them."""

    group: int
    kind: str
    ws: bool
    sparse: bool
    factors: int


@dataclass(frozen=True, slots=True)
class Operands:
    """Readers of the operands; ``a_tensor`` says that A is in tensor memory.

    ``zero_columns`` is the mask descriptor of .ws, ``metadata`` the address of those of a sparse A.
    """

    d: Reader
    a: Reader
    a_tensor: bool
    b: Reader
    kind: Reader
    accumulate: Reader
    masks: tuple[Reader, ...]
    shift: int
    scales: tuple[Reader, ...]
    zero_columns: Reader | None
    metadata: Reader | None


def read_form(i: Instruction, e: Emitter) -> Form:
    """Decode the modifiers; refuse those that are not modelled."""
    words = list(i.modifiers[1:])
    if "ashift" in words:
        raise e.refuse(
            "whether .ashift gives row i of D the row i + 1 or i - 1 of A is not documented"
        )
    ws, sparse = "ws" in words, "sp" in words
    group = cta_group(i, e)
    kinds = [word.removeprefix("kind::") for word in words if word.startswith("kind::")]
    if len(kinds) != 1 or kinds[0] not in instruction_descriptor.KINDS:
        raise e.refuse("one .kind was expected")
    if ws and group == 2:
        raise e.refuse(".ws with .cta_group::2")
    operands = [f"b{number}" for number in range(4)] if ws else ["a"]
    hints = {f"collector::{name}::{hint}" for name in operands for hint in _HINTS}
    rest = [word for word in words if word not in ("ws", "sp", f"cta_group::{group}")]
    rest.remove(f"kind::{kinds[0]}")
    count = 0
    if kinds[0] in BLOCK_SCALED:
        vector = [word for word in rest if word.startswith(("scale_vec", "block1", "block3"))]
        rest = [word for word in rest if word not in vector]
        count = factors(kinds[0], vector) or 0
        if ws or not count or "block_scale" not in rest:
            raise e.refuse(f"block scaling of .kind::{kinds[0]}")
        rest.remove("block_scale")
    if len(rest) > 1 or not set(rest) <= hints:
        raise e.refuse("." + ".".join(rest))
    if i.modifiers[0] != "mma" or max(words.count("ws"), words.count("sp")) > 1:
        raise e.refuse("modifiers")
    return Form(group, kinds[0], ws, sparse, count)


def read_operands(i: Instruction, e: Emitter, form: Form) -> Operands:
    """Make readers of the operands."""
    items = list(i.operands)
    if len(items) < 5 + form.sparse:
        raise e.refuse("operands are missing")
    metadata = e.address(items.pop(3), "u32") if form.sparse else None
    d, a, b, kind, *rest = items
    a_tensor = isinstance(a, Address)
    masks: tuple[Reader, ...] = ()
    scales: tuple[Reader, ...] = ()
    if form.factors:
        if len(rest) != 3:
            raise e.refuse("two addresses of scale factors and enable-input-d were expected")
        scales = (e.address(rest.pop(0), "u32"), e.address(rest.pop(0), "u32"))
    elif isinstance(rest[0], Vector):
        words = rest.pop(0)
        assert isinstance(words, Vector)
        if form.ws or len(words.items) != 4 * form.group:
            raise e.refuse(f"{len(words.items)} words of a disable-output-lane mask")
        masks = tuple(e.reader(word, "b32") for word in words.items)
    if not rest:
        raise e.refuse("enable-input-d is missing")
    accumulate, *more = rest
    shift = 0
    zero_columns: Reader | None = None
    if more and form.ws:
        zero_columns = e.reader(more.pop(0), "b64")
        if more:
            raise e.refuse("operands after the zero-column mask")
    if more:
        factor = more.pop(0)
        if form.kind not in _SCALED_INPUT or more or not isinstance(factor, Immediate):
            raise e.refuse("operands after enable-input-d")
        if factor.kind != "int" or not 0 <= factor.bits <= _MAX_SHIFT:
            raise e.refuse(f"scale-input-d of 0 to {_MAX_SHIFT} was expected")
        shift = factor.bits
    return Operands(
        e.address(d, "u32"),
        e.address(a, "u32") if a_tensor else e.reader(a, "b64"),
        a_tensor,
        e.reader(b, "b64"),
        e.reader(kind, "b32"),
        e.reader(accumulate, "pred"),
        masks,
        shift,
        scales,
        zero_columns,
        metadata,
    )


def check_no_zero_columns(site: Instruction, mask: int) -> None:
    """Refuse masks under which columns of B count as zero, or move."""
    if mask & _MASKS_COLUMNS:
        raise UnsupportedError(
            site,
            f"zero-column mask {mask:#018x}: of its two spans, the PTX ISA's table says that the "
            "first has the columns in use, its examples that the second has",
        )
    if mask & _COLUMN_SHIFT:
        raise UnsupportedError(
            site,
            f"zero-column mask {mask:#018x}: which way its column shift moves B is not documented",
        )
