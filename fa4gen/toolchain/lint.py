"""The lint of a compiler's log, as data: a pattern, its meaning, the suggested fix.

ptxas reports the worst losses as notes and still succeeds: it ignores ``setmaxnreg``, spills
registers, waits after every wgmma. Rules go by the text, since codes differ between releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.toolchain.report import function_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.toolchain.model import Resources, Severity
    from fa4gen.toolchain.report import FunctionFrame

from fa4gen.toolchain.model import Finding


@dataclass(frozen=True)
class Rule:
    """A pattern in the log and what it means."""

    sign: re.Pattern[str]
    """Searched for in each line of the log."""
    code: str
    """Code of the finding where the line carries none of its own."""
    severity: Severity
    meaning: str
    remedy: str


def _rule(sign: str, code: str, meaning: str, remedy: str, severity: Severity = "error") -> Rule:
    return Rule(re.compile(sign), code, severity, meaning, remedy)


_SERIALIZED = r"wgmma\.mma_async instructions are serialized due to "

RULES: tuple[Rule, ...] = (
    _rule(
        r"'setmaxnreg' ignored; unable to determine register count at entry",
        "C7508",
        "setmaxnreg is ignored: the number of registers at launch is not known",
        "Give the kernel __launch_bounds__(threads, 1) with the thread count of its launch.",
    ),
    _rule(
        r"'setmaxnreg' ignored",
        "C7508",
        "setmaxnreg is ignored, so every warp keeps the registers that it was launched with",
        "Compile for one architecture, without debugging (-G) and without calls to functions "
        "outside of this file, and let the registers of all roles fit the launch.",
    ),
    _rule(
        _SERIALIZED + r"the presence of Extern calls",
        "C7509",
        "each wgmma is waited for before the next: the kernel calls a function that ptxas does "
        "not see",
        "Define every function in this file and mark it __forceinline__.",
    ),
    _rule(
        _SERIALIZED + r"wgmma pipeline crossing function boundary",
        "C7510",
        "each wgmma is waited for before the next: a function is called while wgmma is running",
        "Mark every device function __forceinline__, or wait for wgmma before the call.",
    ),
    _rule(
        _SERIALIZED + r"insufficient register resources for the wgmma pipeline",
        "C7511",
        "each wgmma is waited for before the next: accumulators are used between two wgmmas of "
        "one group, or do not fit the registers",
        "Wait (wgmma.wait_group) before accumulators are read or written and fence "
        "(wgmma.fence) before the next wgmma; else lower BN, num_pv_chunks_in_flight or the "
        "number of consumer warpgroups.",
    ),
    _rule(
        _SERIALIZED + r"insufficient register resources for the function",
        "C7512",
        "each wgmma is waited for before the next: too few registers for all that is in flight",
        "Lower num_pv_chunks_in_flight or BN, use fewer consumer warpgroups so that each thread "
        "has more registers, and keep trap and early exits out of the consumers' loops.",
    ),
    _rule(
        _SERIALIZED + r"non wgmma instructions defining input registers",
        "C7513",
        "each wgmma is waited for before the next: registers that a running wgmma reads are "
        "written",
        "Write the registers of P before wgmma.fence, give each chunk its own registers, and "
        "copy none of them while wgmma is running.",
    ),
    _rule(
        _SERIALIZED + r"non wgmma instructions reading accumulator registers",
        "C7514",
        "each wgmma is waited for before the next: accumulators are read while wgmma may still "
        "be writing them",
        "Wait for all groups (wgmma.wait_group 0) before the accumulators are read.",
    ),
    _rule(
        _SERIALIZED + r"non wgmma instructions defining accumulator registers",
        "C7515",
        "each wgmma is waited for before the next: accumulators are written while wgmma is running",
        "Clear or scale accumulators before wgmma.fence, or let the first wgmma overwrite them "
        "(scale-d 0).",
    ),
    _rule(
        _SERIALIZED + r"ill formed pipeline stage",
        "C7516",
        "each wgmma is waited for before the next: fence, wgmma, commit and wait do not follow "
        "one another on every path",
        "Keep fence, wgmma, commit_group and wait_group together, outside of branches that warps "
        "of one warpgroup could take differently.",
    ),
    _rule(
        _SERIALIZED + r"program dependence on compiler-inserted",
        "C7518",
        "each wgmma is waited for before the next: a missing fence or wait could only be "
        "inserted in a branch that threads take differently",
        "Write the fence and the wait yourself, before the branch.",
    ),
    _rule(
        _SERIALIZED,
        "C7510",
        "each wgmma is waited for before the next",
        "See the reason that ptxas gives.",
    ),
    _rule(
        r"(warpgroup\.wait|wgmma\.wait_group) is injected",
        "C7517",
        "ptxas added a wait for wgmma: its results are used while it may still be running",
        "Wait (wgmma.wait_group) before the first use of the accumulators, and keep that use "
        "after the wait with a volatile asm that takes them.",
    ),
    # NVRTC 13.5 adds a fence silently: only nvcc up to 13.0 was seen to report it.
    _rule(
        r"(warpgroup\.arrive|wgmma\.fence) is injected",
        "C7519",
        "ptxas added a fence for wgmma: its registers are written without one",
        "Issue wgmma.fence after the last write to accumulators or P and before wgmma.",
    ),
    _rule(
        r"ptxas\b.*\bwarning\s*:",
        "ptxas",
        "ptxas warns",
        "See the line of the log.",
        "warning",
    ),
    _rule(
        r"^\S+\(\d+\): warning(?: #[\w-]+)?:",
        "source",
        "the compiler warns about the source",
        "See the line of the log.",
        "warning",
    ),
)
"""The first rule whose pattern is in a line decides what the line means."""

_CODE = re.compile(r"\((C\d+)\)")
_PTX_LINE = re.compile(r"\bin (?:around )?line (\d+)")
_SOURCE_WARNING = re.compile(r"^\S+: warning(?: #[\w-]+)?: ")
_SOURCE_PLACE = re.compile(r"^(?P<file>[^\s(]+)\((?P<line>\d+)\):")

_SPILL_REMEDY = (
    "Raise the register budget of the role (registers: ...), or keep fewer values alive: a lower "
    "BN, or anything that `fa4gen explain` shows to take registers."
)
_STACK_REMEDY = (
    "Index arrays with constants only: unroll the loops that do, and inline the functions that "
    "take them by reference."
)


def lint(log: str, resources: Resources) -> tuple[Finding, ...]:
    """Return all findings in ``log``.

    Nothing is left out for being small or for being outside of a hot loop.
    """
    return (*_by_rules(log), *_memory(function_frames(log), resources))


def _by_rules(log: str) -> Iterator[Finding]:
    for line in log.splitlines():
        rule = next((rule for rule in RULES if rule.sign.search(line)), None)
        if rule is None:
            continue
        code = _CODE.search(line)
        ptx_line = _PTX_LINE.search(line) if "ptxas" in line else None
        source = _SOURCE_PLACE.match(line)
        yield Finding(
            code=code[1] if code else rule.code,
            severity=rule.severity,
            message=_SOURCE_WARNING.sub("", line) if source else rule.meaning,
            remedy=rule.remedy,
            log_lines=(line.strip(),),
            file=source["file"] if source else "",
            line=int(source["line"]) if source else 0,
            ptx_line=int(ptx_line[1]) if ptx_line else 0,
        )


def _memory(frames: list[FunctionFrame], resources: Resources) -> Iterator[Finding]:
    if not frames:
        yield Finding(
            code="report",
            severity="error",
            message="the log has no report of registers and spills: so they are unknown",
            remedy="Use NVRTC or nvcc of CUDA 12.8 or newer, whose logs have it.",
            log_lines=(),
        )
    spilled = [frame for frame in frames if frame.spill_store_bytes or frame.spill_load_bytes]
    if spilled:
        yield Finding(
            code="spill",
            severity="error",
            message=f"registers are spilled to local memory: {resources.spill_store_bytes} bytes "
            f"stored, {resources.spill_load_bytes} bytes loaded per thread",
            remedy=_SPILL_REMEDY,
            log_lines=tuple(frame.log_line for frame in spilled),
        )
    # Spills are in the frame as well; a frame without any holds arrays.
    arrays = [frame for frame in frames if frame.stack_bytes and frame not in spilled]
    if arrays:
        yield Finding(
            code="stack",
            severity="error",
            message=f"an array is in local memory instead of registers: "
            f"{resources.stack_bytes} bytes of stack per thread",
            remedy=_STACK_REMEDY,
            log_lines=tuple(frame.log_line for frame in arrays),
        )
    if resources.local_bytes:
        yield Finding(
            code="local",
            severity="error",
            message=f"{resources.local_bytes} bytes of local memory per thread",
            remedy=_STACK_REMEDY,
            log_lines=(),
        )
