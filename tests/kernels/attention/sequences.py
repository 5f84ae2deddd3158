"""Sequences of different lengths in the emulator: one case, and what a sequence gives alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from fa4gen.verify.attention import AttentionFamily
from fa4gen.verify.cases import Case
from fa4gen.verify.emulator import EmulatedKernel, FindingsError
from fa4gen.verify.judge import judge
from tests.kernels.source_mutation import Kernel, program_of, ptx_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fa4gen.emulator import Program
    from fa4gen.verify.memory import AttentionMemory

K = TypeVar("K", bound="HasPlan")
Lengths = tuple[tuple[int, int], ...]
NAN, INFINITY = 0x7FC0, 0x7F80
"""The bits of bf16."""


class OneSchedule:
    """A program that completes every product at once: sums then have one order."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def launch(self, *args: Any, **options: Any) -> Any:
        return self._program.launch(*args, **{**options, "seed": 1, "schedule": "eager"})


class HasPlan(Protocol):
    """A kernel of tests, or one that was built for verify."""

    @property
    def plan(self) -> Any:
        """Its plan."""


def drawn(kernel: HasPlan, lengths: Lengths) -> AttentionMemory:
    """The memory of a case: two query heads share a key head."""
    return _problem(kernel, lengths).memory


def run(kernel: Kernel, memory: AttentionMemory) -> dict[str, Any]:
    """The buffers after a run; FindingsError unless it is clean."""
    program: Any = OneSchedule(program_of(ptx_of(kernel)))
    return EmulatedKernel(kernel.plan, program).run(memory)


def failures(kernel: Kernel, lengths: Lengths) -> list[str]:
    """Return verify's findings about one run of a kernel."""
    problem = _problem(kernel, lengths)
    try:
        after = run(kernel, problem.memory)
    except FindingsError as error:
        return [str(error)]
    found, _ = judge(problem.memory, after, after, problem.reference(np))
    return [failure.message for failure in found]


def _problem(kernel: HasPlan, lengths: Lengths) -> Any:
    rows, keys = (max(pair[i] for pair in lengths) for i in (0, 1))
    case = Case("ragged/test", len(lengths), 2, 1, rows, keys, lengths=lengths)
    return AttentionFamily(kernel.plan).draw(case, 7)


def assert_isolated(
    kernel: K,
    lengths: Lengths,
    chosen: Sequence[int],
    poisons: Sequence[int],
    run: Callable[[K, AttentionMemory], Mapping[str, Any]] = run,
) -> None:
    """Assert that sequences give the same bits alone, among others, and among ``poisons``.

    All other rows of query, key and value hold one: of neighbours, of unused pages, past the end.
    """
    plan, together = kernel.plan, drawn(kernel, lengths)
    among = run(kernel, together)
    for sequence in chosen:
        alone = drawn(kernel, (lengths[sequence],))
        runs = [(together, among)]
        for name in ("query", "key", "value"):
            kept = together.views[name].bits(together.buffers[name])
            own = alone.views[name].bits(alone.buffers[name])
            own[_rows(plan, alone, name, 0)] = kept[_rows(plan, together, name, sequence)]
        if plan.sinks:  # of heads, not of sequences: drawn anew for the other case
            alone.buffers["sinks"][...] = together.buffers["sinks"]
        expected = _results(plan, alone, run(kernel, alone), 0)
        for poison in poisons:
            poisoned = _poisoned(plan, together, sequence, poison)
            runs.append((poisoned, run(kernel, poisoned)))
        for memory, after in runs:
            got = _results(plan, memory, after, sequence)
            for ours, own in zip(got, expected, strict=True):
                np.testing.assert_array_equal(ours, own)


def _poisoned(plan: Any, memory: AttentionMemory, sequence: int, poison: int) -> AttentionMemory:
    """``memory`` with ``poison`` in all rows but those of a sequence."""
    buffers = {name: image.copy() for name, image in memory.buffers.items()}
    for name in ("query", "key", "value"):
        bits = memory.views[name].bits(buffers[name])
        ours = _rows(plan, memory, name, sequence)
        kept = bits[ours].copy()
        bits[...] = poison
        bits[ours] = kept
    return replace(memory, buffers=buffers)


def _rows(plan: Any, memory: AttentionMemory, name: str, sequence: int) -> tuple[Any, ...]:
    """The index of a sequence's rows in a tensor: of rows, or of batches or pages and rows."""
    source = plan.key_source if name in ("key", "value") else plan.query_source
    tables = {
        table.name: memory.views[table.name].bits(memory.buffers[table.name]).view(np.int32)
        for table in source.tables
    }
    shape = memory.views[name].shape
    each = shape[1] if len(shape) == 4 else 0
    rows = source.rows(sequence, each, tables)
    return (rows // each, rows % each) if each else (rows,)


def _results(
    plan: Any, memory: AttentionMemory, after: Mapping[str, Any], sequence: int
) -> tuple[Any, Any]:
    ours = _rows(plan, memory, "out", sequence)
    out, lse = (memory.views[name].bits(after[name]) for name in ("out", "lse"))
    return out[ours], np.moveaxis(lse, -1, -2)[ours]
