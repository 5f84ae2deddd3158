"""A CPU emulator of Hopper and Blackwell PTX: results, deadlocks and races without a GPU.

It executes the PTX that a compiler produced, of this project's kernels or of any other::

    from fa4gen.emulator import Program, TensorMap

    program = Program(ptx_text)
    report = program.launch("entry", grid=(4, 1, 1), block=(128, 1, 1), args=[a, b, c])
    print(report)
"""

from __future__ import annotations

from fa4gen.emulator.coverage.counts import Coverage
from fa4gen.emulator.errors import EmulatorError, LaunchError, PtxSyntaxError, UnsupportedError
from fa4gen.emulator.names import NamedRange, NamedThreads, Names
from fa4gen.emulator.program import Program
from fa4gen.emulator.report import Finding, Report, Severity, Verdict
from fa4gen.emulator.scheduling.limits import SCHEDULES, Limits
from fa4gen.emulator.state.relocations import Bytes, Memory
from fa4gen.emulator.state.tensor_map import TensorMap

__all__ = [
    "SCHEDULES",
    "Bytes",
    "Coverage",
    "EmulatorError",
    "Finding",
    "LaunchError",
    "Limits",
    "Memory",
    "NamedRange",
    "NamedThreads",
    "Names",
    "Program",
    "PtxSyntaxError",
    "Report",
    "Severity",
    "TensorMap",
    "UnsupportedError",
    "Verdict",
]
