"""The cost table of the timeline: issue slots and latencies in cycles, H100/H200 and B200.

Figures are issue intervals of one warp on its quarter of an SM, from published microbenchmarks and
our own measurements on an H200; they make a model, not a prediction.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction

# From the end of an operation's use of its unit to the moment that it is seen.
LATENCY: Final = {
    "tensor": 65.0,
    "tma": 500.0,
    "other": 30.0,
    "mbarrier": 15.0,
    "barrier": 20.0,
}

# 32 lanes at 16 a cycle and quarter SM for the common ones; the special-function unit gives four.
_CYCLES: Final = {
    "ex2": 8.0, "lg2": 8.0, "rcp": 8.0, "rsqrt": 8.0, "sqrt": 8.0, "sin": 8.0, "cos": 8.0,
    "tanh": 8.0, "div": 16.0, "max": 2.0, "min": 2.0, "cvt": 2.0, "shfl": 2.0,
    "mbarrier": 8.0, "cp": 8.0, "wgmma": 2.0, "tcgen05": 2.0, "fence": 8.0, "atom": 8.0,
    "ldmatrix": 4.0, "stmatrix": 4.0, "mma": 16.0,
}  # fmt: skip
# What a compiler makes nothing of.
_FREE: Final = ("mov", "cvta")
_PAIRED: Final = 2.0


@cache
def _opcode_cycles(opcode: str, text: str) -> float:
    if opcode in _FREE:
        return 0.0
    if opcode in ("ld", "st"):
        wide = 4.0 if ".v4" in text else 2.0 if ".v2" in text else 1.0
        return wide * (1.0 if "param" in text else 2.0)
    if text.endswith("f32x2"):
        return _PAIRED
    return _CYCLES.get(opcode, 1.0)


def instruction_cycles(instruction: Instruction) -> float:
    """Issue slots of one warp, in cycles."""
    return _opcode_cycles(instruction.opcode, instruction.text)
