"""The cost table of the timeline: use of an SM's quarter by each instruction, and latencies.

In cycles, for one warp of 32 lanes. Sources, as the comments below call them: [H] measured on an
H200; [B] the B200 configuration of FlashGPU-Sim; [C] its H100 configuration, fitted to
microbenchmarks; [U] SemiAnalysis' microbench-blackwell, files umma_latency and tma2d_lat; [S] the
SASS of ptxas 13.0 for sm_100a. A comment marks numbers without a source.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction

BLACKWELL: Final = 100
PIPES: Final = ("issue", "fma", "alu", "exp2", "shared")
"""The resources that warps compete for: issue slots, the units for fused multiply-add, for
comparisons and integers, for exponentials and their like, all per quarter of an SM, and the one
port of the SM to shared memory."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an instruction for one warp.

    ``use`` of each of PIPES; ``latency`` until its result can be used; ``hold``: the warp's next
    instruction is so much later.
    """

    use: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0)
    latency: float = 4.0
    hold: float = 0.0


@dataclass(frozen=True, slots=True)
class Chip:
    """Latencies of a family of chips.

    arrive    from a thread's arrival at an mbarrier to the end of the phase
    try_wait  from the end of a phase to the instruction after the wait
    barrier   the same for a named barrier, from the last arrival
    copy      from a bulk copy's last byte leaving its place to the end of the phase
    tensor_load, tensor_store  from a column's turn to the end of tcgen05.wait
    """

    arrive: float
    try_wait: float
    barrier: float
    copy: float
    tensor_load: float = 0.0
    tensor_store: float = 0.0


# arrive and try_wait: 29 and 32 [C]. barrier: released 15 after an arrival [C]; 24 + 18 [B].
# copy: a Hopper figure was not found; 8 KB take 511 to 962 in the median [U], less their transfer
# (128) and the wait (32). tensor_load and tensor_store: no trustworthy figure; taken as about that
# of a load from shared memory (19 [B]).
_HOPPER: Final = Chip(29.0, 32.0, 15.0, 500.0)
_BLACKWELL: Final = Chip(29.0, 32.0, 42.0, 600.0, 24.0, 24.0)

# wgmma: 66 cycles after the last product, 64 with A in registers [C].
_WGMMA_TAIL: Final = (66.0, 64.0)
# tcgen05.mma by (CTAs, rows): latency of one product less its time in the pipe, up to the end of
# a wait for its commit [U]: 136 with A in shared memory, 104 in tensor memory, and so on. Without
# the wait.
_TAIL: Final = {(1, 128): (136.0, 104.0), (1, 64): (120.0, 104.0)}
_PAIR_TAIL: Final = (165.0, 133.0)

TENSOR_MEMORY_BYTES: Final = 128.0
"""Tensor memory to or from the registers of a quarter, a cycle: one column of its 32 lanes. Not
measured anywhere; it is the width of the lanes."""

SHARED_BYTES: Final = 128.0
"""The bytes that the port of shared memory moves in a cycle (127.9 [H]; unchanged on Blackwell)."""


def chip_of(sm: int) -> Chip:
    """The latencies of an architecture."""
    return _BLACKWELL if sm >= BLACKWELL else _HOPPER


def product_tail(kind: str, ctas: int, rows: int, a_shared: bool) -> float:
    """From a matrix product's last cycle in the tensor core to the moment its end is signalled."""
    if kind == "wgmma":
        return _WGMMA_TAIL[not a_shared]
    tails = _PAIR_TAIL if ctas == 2 else _TAIL.get((ctas, rows), _TAIL[1, 128])
    return tails[not a_shared] - _BLACKWELL.try_wait


def _cost(
    *, issue: float = 1.0, fma: float = 0.0, alu: float = 0.0, exp2: float = 0.0,
    shared: float = 0.0, latency: float = 4.0, hold: float = 0.0,
) -> Cost:  # fmt: skip
    return Cost((issue, fma, alu, exp2, shared), latency, hold)


# Instructions that a compiler drops, or moves to the unit of uniform values.
_FREE: Final = ("mov", "cvta", "membar")
_FMA: Final = _cost(fma=1)  # 128 lanes a cycle and SM (125 [H])
# two values in an instruction: one issue slot, but every 2 cycles [B]; as to bf16x2, one cycle [?]
_PACKED: Final = _cost(fma=2)
_EXP2: Final = _cost(exp2=8, latency=18)  # 16 lanes a cycle and SM [H]; latency 18 [B]
_ALU: Final = _cost(alu=2)  # 64 lanes a cycle and SM (63 for max and cvt.bf16x2 [H])
_MAXIMUM: Final = _cost(alu=2, latency=5)  # [B]
# A chain of maxima becomes half as many instructions with three operands [S].
_HALF_MAXIMUM: Final = _cost(issue=0.5, alu=1, latency=2.5)
_SHUFFLE: Final = _cost(shared=1, latency=24)
_GLOBAL: Final = _cost(shared=1, latency=500)  # a third of the way from L2 (301) to DRAM (789)
_SPECIAL: Final = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "div")
_FLOATING: Final = ("fma", "add", "sub", "mul", "neg", "abs", "copysign")
_OTHERS: Final = {
    "shfl": _SHUFFLE,
    "ldmatrix": _cost(shared=4, latency=24),
    "stmatrix": _cost(shared=4),
    "atom": _cost(shared=2, latency=24),
    "red": _cost(shared=2),
    "mbarrier": _cost(shared=1, hold=4),  # own guess: the address and the instruction itself
    "fence": _cost(hold=8),  # fence.sc.cta 8.6 on a B300
    "mma": _cost(issue=16),  # own guess for all shapes
    "bra": _cost(issue=2),
}
_TMA_GAP: Final = 32.0  # between two bulk copies of a thread [C]
_MMA_GAP: Final = 11.0  # tcgen05.mma, arXiv 2512.02189: too short for a latency, so an interval
_WGMMA_GAP: Final = 17.0  # [C]


def _width(text: str) -> int:
    """The number of 32-bit words that an access moves."""
    vector = 8 if ".v8" in text else 4 if ".v4" in text else 2 if ".v2" in text else 1
    bits = text.rpartition(".")[2].lstrip("bsuf")
    return vector * max(int(bits) // 32 if bits.isdigit() else 1, 1)


def _asynchronous(opcode: str, text: str) -> Cost | None:
    if opcode == "cp" or text.startswith("tcgen05.cp"):
        return _cost(hold=_TMA_GAP if "bulk.tensor" in text or "bulk.shared" in text else 4.0)
    if text.startswith("tcgen05.mma"):
        return _cost(hold=_MMA_GAP)
    if text.startswith("wgmma.mma"):
        return _cost(hold=_WGMMA_GAP)
    return _cost() if opcode in ("tcgen05", "wgmma") else None


def _memory(text: str) -> Cost:
    if ".param" in text or ".const" in text:
        return _cost(latency=8)
    if ".shared" in text:  # 32 lanes of 4 bytes a cycle
        words = _width(text)
        return _cost(shared=words, latency=24 if text.startswith("ld") else 4)  # 19 [B], 29 [C]
    return _GLOBAL if text.startswith("ld") else _cost(shared=_width(text))


@cache
def _by_text(opcode: str, text: str, sources: int, blackwell: bool) -> Cost:
    kind = text.rpartition(".")[2]
    packed = kind in ("f32x2", "f16x2", "bf16x2")
    if opcode in _FREE:
        return _cost(issue=0.0, latency=0)
    if opcode in _SPECIAL:
        # the forms for two values take twice as long: no gain [H]
        return _cost(exp2=16, latency=26) if packed else _EXP2
    if opcode in ("ld", "ldu", "st"):
        return _memory(text)
    if opcode in _OTHERS:
        return _OTHERS[opcode]
    asynchronous = _asynchronous(opcode, text)
    if asynchronous is not None:
        return asynchronous
    if opcode in ("max", "min"):
        return _HALF_MAXIMUM if blackwell and kind == "f32" and sources == 2 else _MAXIMUM
    if opcode in _FLOATING and (packed or kind in ("f32", "f16", "bf16", "f64")):
        return _PACKED if kind == "f32x2" else _FMA
    if opcode in ("mul", "mad"):
        return _cost(fma=2)
    return _ALU


def instruction_cost(instruction: Instruction, sm: int) -> Cost:
    """The cost of an instruction for one warp."""
    sources = max(len(instruction.operands) - 1, 0)
    return _by_text(instruction.opcode, instruction.text, sources, sm >= BLACKWELL)
