"""The order, by ``wgmma.fence``, of other accesses to registers before the products that use them.

PTX asks for a fence before the first product of a warpgroup, and between an access to a register by
any other instruction and a product that uses the register as accumulator or operand. Products that
add to the same accumulators need none between them. A ``mov`` renames: compilers copy accumulators
and operands where control flow joins, and ptxas gives both names one register.

Compilers let initial constants sink below the fence that the source has after them (nvcc 13 does,
unless the source ties accumulators to the fence), and may do so with computations; ptxas orders
them all the same. So constants below a fence are ignored and computations below one are for review,
whereas a product with no fence since the last wait is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fa4gen.emulator.ptx.flow.registers import NO_REGISTERS, RegisterFlow, registers_of
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Register, Vector

_KIND: Final = "missing-wgmma-fence"


@dataclass(slots=True)
class _State:
    """Registers that others wrote and read since the last fence.

    ``bare``: there may have been no fence at all yet; ``stale``: none since the last wait.
    """

    bare: bool = False
    stale: bool = False
    written: frozenset[int] = NO_REGISTERS
    read: frozenset[int] = NO_REGISTERS

    def joined(self, other: _State) -> _State:
        return _State(
            self.bare or other.bare,
            self.stale or other.stale,
            self.written | other.written,
            self.read | other.read,
        )


@dataclass(slots=True)
class _Walk:
    flow: RegisterFlow
    accumulators: frozenset[int]
    relevant: frozenset[int]
    wrong: dict[int, str] = field(default_factory=dict)
    doubtful: dict[int, str] = field(default_factory=dict)


Wrong: TypeAlias = tuple[str, str, Instruction]


def is_product(instruction: Instruction) -> bool:
    """Whether an instruction is a wgmma.mma_async."""
    return instruction.opcode == "wgmma" and instruction.modifiers[:1] == ("mma_async",)


def unfenced(flow: RegisterFlow) -> tuple[list[Wrong], list[Wrong]]:
    """The products that lack a fence and those for review: (kind, message, instruction)."""
    products = [index for index, one in enumerate(flow.code) if is_product(one)]
    accumulators = frozenset(
        register for index in products for register in registers_of(flow.code[index].operands[0])
    )
    walk = _Walk(flow, accumulators, _relevant(flow, products, accumulators))
    states: dict[int, _State] = {0: _State(bare=True)}
    todo = [0]
    while todo:
        index = todo.pop()
        after = _step(walk, index, states[index])
        for following in flow.successors[index]:
            known = states.get(following)
            joined = after if known is None else known.joined(after)
            if known is None or joined != known:
                states[following] = joined
                todo.append(following)
    return _as_findings(flow, walk.wrong), _as_findings(
        flow, {index: text for index, text in walk.doubtful.items() if index not in walk.wrong}
    )


def _as_findings(flow: RegisterFlow, messages: dict[int, str]) -> list[Wrong]:
    return [(_KIND, messages[index], flow.code[index]) for index in sorted(messages)]


def _relevant(
    flow: RegisterFlow, products: list[int], accumulators: frozenset[int]
) -> frozenset[int]:
    """The registers of products and those that are moved into them."""
    found = set(accumulators)
    for index in products:
        operand = flow.code[index].operands[1]
        if isinstance(operand, Vector):
            found.update(registers_of(operand))
    grew = True
    while grew:
        grew = False
        for index, one in enumerate(flow.code):
            if one.opcode == "mov" and flow.writes[index] & found:
                grew = grew or not flow.reads[index] <= found
                found |= flow.reads[index]
    return frozenset(found)


def _step(walk: _Walk, index: int, state: _State) -> _State:
    one = walk.flow.code[index]
    if one.opcode == "wgmma":
        if one.modifiers[0] == "fence":
            return _State()
        if one.modifiers[0] == "wait_group":
            return _State(state.bare, True, state.written, state.read)
        return _product(walk, index, state) if is_product(one) else state
    writes = walk.flow.writes[index] & walk.relevant
    if one.opcode == "mov" and not _computes(one.operands[1]):
        sources = walk.flow.reads[index]
        if not writes:
            return state
        written = state.written if one.guard is not None else state.written - writes
        if sources & state.written or (not sources and state.stale):
            written |= writes
        return _State(state.bare, state.stale, written, state.read - writes)
    reads = walk.flow.reads[index] & walk.accumulators
    if writes <= state.written and reads <= state.read:
        return state
    return _State(state.bare, state.stale, state.written | writes, state.read | reads)


def _computes(source: Operand) -> bool:
    """Whether a mov makes a new value: it packs narrower registers."""
    return isinstance(source, Vector) and any(
        isinstance(item, Register) and item.cls == "h" for item in source.items
    )


def _product(walk: _Walk, index: int, state: _State) -> _State:
    one = walk.flow.code[index]
    own = frozenset(registers_of(one.operands[0]))
    operand = one.operands[1]
    fragments = frozenset(registers_of(operand)) if isinstance(operand, Vector) else NO_REGISTERS
    found = walk.wrong if state.stale else walk.doubtful
    if state.bare:
        walk.wrong[index] = (
            "no wgmma.fence orders the registers of this first wgmma after what wrote them"
        )
    elif own & state.written:
        found[index] = _message(one, own & state.written, "accumulator", "written")
    elif fragments & state.written:
        found[index] = _message(one, fragments & state.written, "operand", "written")
    elif own & state.read:
        found[index] = _message(one, own & state.read, "accumulator", "read")
    return _State(False, state.stale, state.written - own, state.read - own)


def _message(one: Instruction, registers: frozenset[int], role: str, what: str) -> str:
    names = [
        item.name
        for operand in one.operands[:2]
        if isinstance(operand, Vector)
        for item in operand.items
        if isinstance(item, Register) and set(registers_of(item)) & registers
    ]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{role} {names[0]}{more}: {what} by other instructions with no wgmma.fence in between"
