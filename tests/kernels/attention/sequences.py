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
POISONS = {"bf16": (0x7FC0, 0x7F80), "fp16": (0x7E00, 0x7C00), "fp8_e4m3": (0x7F, 0x7E)}
"""The bits of NaN and of infinity; of e4m3, which has none, the largest number."""
NAN_SCALE = 0x7FC00000


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
    run: Callable[[K, AttentionMemory], Mapping[str, Any]] = run,
    *,
    kinds: int = 2,
) -> None:
    """Assert that sequences give the same bits alone, among others, and among poison.

    All other rows of query, key and value hold it: of neighbours, of unused pages, past the end.
    Scales of others are NaN. ``kinds``: NaN alone, or also infinity.
    """
    plan, together = kernel.plan, drawn(kernel, lengths)
    among = run(kernel, together)
    for sequence in chosen:
        alone = drawn(kernel, (lengths[sequence],))
        runs = [(together, among)]
        for name in _of_sequences(together):
            kept = together.views[name].bits(together.buffers[name])
            own = alone.views[name].bits(alone.buffers[name])
            own[_places(plan, alone, name, 0)] = kept[_places(plan, together, name, sequence)]
        if plan.sinks:  # of heads, not of sequences: drawn anew for the other case
            alone.buffers["sinks"][...] = together.buffers["sinks"]
        expected = _results(plan, alone, run(kernel, alone), 0)
        for kind in range(kinds):
            poisoned = _poisoned(plan, together, sequence, kind)
            runs.append((poisoned, run(kernel, poisoned)))
        for memory, after in runs:
            got = _results(plan, memory, after, sequence)
            for ours, own in zip(got, expected, strict=True):
                np.testing.assert_array_equal(ours, own)


def _of_sequences(memory: AttentionMemory) -> list[str]:
    """The inputs of which a sequence has a part: rows, and scales of its own or of its pages."""
    scales = ("query_descale", "key_descale", "value_descale")
    return ["query", "key", "value", *(name for name in scales if name in memory.views)]


def _poisoned(plan: Any, memory: AttentionMemory, sequence: int, kind: int) -> AttentionMemory:
    """``memory`` with a kind of poison in all but what a sequence has."""
    buffers = {name: image.copy() for name, image in memory.buffers.items()}
    dtypes = {"query": plan.dtype, "key": plan.kv_dtype, "value": plan.kv_dtype}
    for name in _of_sequences(memory):
        bits = memory.views[name].bits(buffers[name])
        ours = _places(plan, memory, name, sequence)
        kept = bits[ours].copy()
        bits[...] = POISONS[dtypes[name]][kind] if name in dtypes else NAN_SCALE
        bits[ours] = kept
    return replace(memory, buffers=buffers)


def _places(plan: Any, memory: AttentionMemory, name: str, sequence: int) -> tuple[Any, ...]:
    """The index of a sequence's rows in a tensor, or of its scales."""
    if not name.endswith("_descale"):
        return _rows(plan, memory, name, sequence)
    if name == "query_descale" or not plan.has_page_scales:
        return (sequence,)
    return (_rows(plan, memory, name.removesuffix("_descale"), sequence)[0],)


def _rows(plan: Any, memory: AttentionMemory, name: str, sequence: int) -> tuple[Any, ...]:
    """The index of a sequence's rows in a tensor: of rows, or of batches or pages and rows.

    Without those of pages that no row sees: their entries in the table name no page.
    """
    source = plan.key_source if name in ("key", "value") else plan.query_source
    tables = {
        table.name: memory.views[table.name].bits(memory.buffers[table.name]).view(np.int32)
        for table in source.tables
    }
    shape = memory.views[name].shape
    each = shape[1] if len(shape) == 4 else 0
    rows = source.rows(sequence, each, tables)
    if not each:
        return (rows,)
    rows = rows[(rows >= 0) & (rows < shape[0] * each)]
    return rows // each, rows % each


def _results(
    plan: Any, memory: AttentionMemory, after: Mapping[str, Any], sequence: int
) -> tuple[Any, Any]:
    ours = _rows(plan, memory, "out", sequence)
    out, lse = (memory.views[name].bits(after[name]) for name in ("out", "lse"))
    return out[ours], np.moveaxis(lse, -1, -2)[ours]
