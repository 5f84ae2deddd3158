"""Matrix products of tensor memory (PTX ISA, "tcgen05.mma").

Chosen where the sources are silent [?]: of the eight words of a disable-output-lane mask with
``.cta_group::2`` the first four are the even CTA's. Not modelled are ``.ashift``, zero-column masks
of ``.ws`` that mask a column, 4-bit and 6-bit elements of f8f6f4 and of mxf8f6f4 in tensor memory,
and a sparse A of 64 rows in a CTA without ``.ws``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.instructions.copy.endpoints import only, pick
from fa4gen.emulator.instructions.mma import descriptors
from fa4gen.emulator.instructions.mma.descriptors import Descriptor, DescriptorError
from fa4gen.emulator.instructions.mma.operand_tiles import ELEMENT_BYTES, NARROW
from fa4gen.emulator.instructions.tcgen05 import instruction_descriptor, sparsity
from fa4gen.emulator.instructions.tcgen05.commit import commit, remember
from fa4gen.emulator.instructions.tcgen05.common import (
    check_columns,
    check_one_thread,
    use_group,
)
from fa4gen.emulator.instructions.tcgen05.copy import copy, shift
from fa4gen.emulator.instructions.tcgen05.forms import (
    Form,
    Operands,
    check_no_zero_columns,
    read_form,
    read_operands,
)
from fa4gen.emulator.instructions.tcgen05.inputs import A_COLUMNS
from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import (
    InstructionDescriptor,
)
from fa4gen.emulator.instructions.tcgen05.layouts import Piece, pieces
from fa4gen.emulator.instructions.tcgen05.operands import extent, stored
from fa4gen.emulator.instructions.tcgen05.product import Product
from fa4gen.emulator.instructions.tcgen05.queue import queue_of
from fa4gen.emulator.instructions.tcgen05.scales import SCALE_FACTOR_ID, Scales, columns
from fa4gen.emulator.instructions.tcgen05.sparsity import Metadata
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Warpgroup
from fa4gen.emulator.state.memory import RESERVED_SHARED
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.state.tensor_memory import LANES, split_address
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate


class _Issue:
    """One execution of a tcgen05.mma by one thread: checks its operands."""

    def __init__(self, wg: Warpgroup, lane: int, site: Instruction, form: Form) -> None:
        self.wg, self.lane, self.site, self.form = wg, lane, site, form
        self.mask = only(wg, lane)
        self.ctas = use_group(wg, self.mask, site, form.group)

    def fault(self, kind: str, message: str) -> NoReturn:
        self.wg.machine.fault(kind, message, self.site, self.wg, self.mask)

    def kind(self, bits: int) -> InstructionDescriptor:
        """Decode and check the instruction descriptor."""
        kind = instruction_descriptor.decode(bits, self.form.kind, self.form.group, self.form.ws)
        if kind.problems:
            self.fault("descriptor", f"instruction descriptor {bits:#010x}: "
                       + "; ".join(kind.problems))  # fmt: skip
        if kind.sparse != self.form.sparse:
            which = "sparse, which" if kind.sparse else "dense, which"
            self.fault("descriptor", f"instruction descriptor {bits:#010x}: {which} the "
                       "instruction is not")  # fmt: skip
        for remark in kind.remarks:
            self.wg.machine.find(
                "descriptor", remark, self.site, self.wg, self.mask, Severity.REVIEW
            )
        return kind

    def tile(
        self, bits: int, what: str, k_major: bool, mn: int, k: int, element: str
    ) -> Descriptor:
        """Decode and check an operand's descriptor, in every CTA of the group.

        ``k`` counts elements of the type ``element`` as they are stored.
        """
        try:
            descriptor = descriptors.decode(bits, self.wg.machine.sm)
        except DescriptorError as error:
            self.fault("descriptor", f"{what}: {error}")
        size = ELEMENT_BYTES[element]
        if element in NARROW and not k_major:
            self.fault("descriptor", f"{what}: elements in {element} have to be K-major")
        narrow = descriptor.span == 128 and descriptor.atom == 32
        if narrow and (k_major or size != 4):
            self.fault("descriptor", f"{what}: atoms of 32 bytes are for MN-major tf32")
        if size == 4 and not k_major and not narrow:
            self.fault("descriptor", f"{what}: MN-major tf32 needs the 128-byte swizzle with "
                       "atoms of 32 bytes")  # fmt: skip
        if k_major and 0 < descriptor.span < size * k:
            raise UnsupportedError(
                self.site,
                f"where the second half of K is with a swizzle of {descriptor.span} bytes",
            )
        start, stop = extent(descriptor, k_major, mn, k, element)
        for cta in self.ctas:
            if start < RESERVED_SHARED or stop > cta.shared.size:
                self.fault(
                    "out-of-bounds",
                    f"{what}, {mn} by {k} {element} at offset {descriptor.address} of shared "
                    f"memory, is not inside that of {cta.label}",
                )
        return descriptor

    def column(self, address: int, what: str, columns: int, base: int | None) -> tuple[int, int]:
        """Check an address and its columns in every CTA; gives (lane, column).

        ``base`` is the required lane of the address; None allows 0 and 16.
        """
        lane, column = split_address(address)
        if lane >= LANES or (lane not in (0, 16) if base is None else lane != base):
            wanted = "0 or 16" if base is None else str(base)
            self.fault("tensor-memory", f"{what} at {address:#x} is in lane {lane}, not {wanted}")
        for cta in self.ctas:
            check_columns(
                self.wg, self.mask, self.site, cta, f"{what} in", column, column + columns
            )
        return lane, column

    def metadata(self, address: int, kind: InstructionDescriptor) -> Metadata:
        """Check where the metadata of a sparse A are."""
        if kind.m // self.form.group == 64 and not self.form.ws:
            raise UnsupportedError(
                self.site,
                "where the metadata of 64 rows are: the PTX ISA says that in figures only",
            )
        if kind.selector > 1:
            raise UnsupportedError(
                self.site, f"sparsity selector {kind.selector}: which column it selects is in "
                "figures only"
            )  # fmt: skip
        _, column = self.column(address, "sparsity metadata", 2, 0)
        if column % 2:
            self.fault("tensor-memory", f"sparsity metadata at column {column}, which is odd")
        return sparsity.place(kind, column)

    def scales(self, places: list[int], kind: InstructionDescriptor) -> Scales:
        """Check where the block scale factors are."""
        count = self.form.factors
        rows = kind.m // self.form.group
        at_a, at_b = (place & ~SCALE_FACTOR_ID for place in places)
        _, a = self.column(at_a, "scale factors of A", columns(rows), 0)
        _, b = self.column(at_b, "scale factors of B", columns(kind.n), 0)
        for byte in (kind.scale_a, kind.scale_b):
            if byte % count:
                self.fault("descriptor", f"scale factor id {byte} with {count} factors a row")
        return Scales(a, b, count, kind.scale_a, kind.scale_b, kind.scale or "")


def _enabled(words: list[int], group: int) -> tuple[NDArray[np.bool_], ...] | None:
    """Lanes that are written, for each CTA of the group."""
    if not any(words):
        return None
    raw = np.array(words, "<u4").view(np.uint8)
    bits = ~np.unpackbits(raw, bitorder="little").astype(np.bool_)
    return tuple(bits[LANES * number : LANES * (number + 1)] for number in range(group))


def _width(layout: tuple[Piece, ...]) -> int:
    """Columns that D takes."""
    return max(piece.columns for piece in layout)


_PRODUCTS: Final = Attached[Warpgroup, dict[tuple[Any, ...], Product]](lambda wg: {})
"""Products that need no more checks, by everything that they were issued with."""
_LAST: Final = Attached[Warpgroup, "tuple[AsyncOp | None, int]"](lambda wg: (None, 0))
"""The last product issued, and how many instructions had been executed then."""


def _issue(
    wg: Warpgroup,
    lane: int,
    site: Instruction,
    form: Form,
    values: list[int],
    operands: Operands,
    words: list[int],
    before: AsyncOp | None,
) -> None:
    d, a, b, bits, accumulate, *places = values
    meta = places.pop() if form.sparse else 0
    key = site, lane, *values, *words
    known = _PRODUCTS.of(wg)
    if key in known and known[key].has_columns():
        submit(wg, lane, site, known[key], d, before)
        return
    issue = _Issue(wg, lane, site, form)
    kind = issue.kind(bits)
    share = form.group
    spread = kind.m == 64 and not form.ws and share == 1
    probe = pieces(kind.m, kind.n, share, form.ws, 0)
    base, column = issue.column(d, "D", _width(probe), None if spread else 0)
    layout = pieces(kind.m, kind.n, share, form.ws, base) if base else probe
    tile: Descriptor | None = None
    a_column = 0
    if operands.a_tensor:
        if kind.transpose_a:
            issue.fault("descriptor", "A in tensor memory cannot be transposed")
        if kind.a in NARROW and not kind.packed:
            raise UnsupportedError(
                site,
                f"which bits of its byte of tensor memory an element in {kind.a} takes: the PTX "
                "ISA says that in figures only",
            )
        _, a_column = issue.column(a, "A", A_COLUMNS, base)
    else:
        element, k = stored(kind, True)
        tile = issue.tile(a, "A", not kind.transpose_a, kind.m // share, k, element)
    element, k = stored(kind, False)
    b_tile = issue.tile(b, "B", not kind.transpose_b, kind.n // share, k, element)
    product = Product(
        wg, lane, site, issue.ctas, kind, layout, column, tile, a_column, b_tile,
        bool(accumulate), operands.shift if accumulate else 0, _enabled(words, share),
        issue.scales(places, kind) if places else None,
        issue.metadata(meta, kind) if form.sparse else None,
    )  # fmt: skip
    if not kind.remarks:
        known[key] = product
    submit(wg, lane, site, product, d, before)


def submit(
    wg: Warpgroup, lane: int, site: Instruction, product: Product, d: int, before: AsyncOp | None
) -> None:
    """Put a product into its thread's queue and report its accesses to the observer.

    ``before`` is the one that the thread issued just before, with nothing in between: with the same
    accumulator, this one continues it.
    """
    machine = wg.machine
    op = AsyncOp("tcgen05.mma", wg, lane, site, product.run, unit="tensor")
    if machine.observer.enabled:
        touched = product.touched
        op.cycles = touched.cycles
        op.reads = touched.shared_reads
        op.tensor_reads = touched.tensor_reads
        op.tensor_writes = touched.tensor_writes
        shape = (product.kind.m, product.kind.n)
        op.notes["product"] = touched.facts
        op.notes["accumulator"] = (d, shape, len(product.ctas))
        if before is not None and (
            before.notes["accumulator"] == op.notes["accumulator"]
            and before.tensor_writes == op.tensor_writes
        ):
            op.continues = before
    queue_of(wg, lane).submit(op, product)
    op.continues = None
    remember(wg, lane, op)
    _LAST.set(wg, (op, machine.scheduler.instructions))


def _just_before(wg: Warpgroup, lane: int, site: Instruction | None) -> AsyncOp | None:
    """The thread's last product, if it issued that at ``site`` in this very run of instructions."""
    op, count = _LAST.of(wg)
    if op is None or op.site is not site or op.lane != lane:
        return None
    here = wg.machine.observer.enabled and count == wg.machine.scheduler.instructions
    return op if here else None


def mma(i: Instruction, e: Emitter) -> None:
    """``tcgen05.mma``, with ``.ws``, ``.sp`` or both."""
    form = read_form(i, e)
    operands = read_operands(i, e, form)
    follows = e.previous

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_one_thread(wg, mask, i)
        rows: list[Any] = [
            read(wg)
            for read in (
                operands.d, operands.a, operands.b, operands.kind, operands.accumulate,
                *operands.scales, *([] if operands.metadata is None else [operands.metadata]),
            )
        ]  # fmt: skip
        masks = [read(wg) for read in operands.masks]
        zeros = None if operands.zero_columns is None else operands.zero_columns(wg)
        lanes = wg.lanes_of(mask).tolist()
        before = None if len(lanes) > 1 else _just_before(wg, lanes[0], follows)
        for lane in lanes:
            if zeros is not None:
                check_no_zero_columns(i, pick(zeros, lane))
            values = [pick(row, lane) for row in rows]
            words = [pick(row, lane) for row in masks]
            _issue(wg, lane, i, form, values, operands, words, before)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "tcgen05.mma": mma,
    "tcgen05.commit": commit,
    "tcgen05.cp": copy,
    "tcgen05.shift": shift,
}
