"""Attention in verify: its cases with their inputs, references, and how its kernels are called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.designs.common.score_text import GIVEN
from fa4gen.masks.block_lists import list_blocks
from fa4gen.masks.given_blocks import SEEN_BLOCKS
from fa4gen.runtime.arguments import OPTIONAL, Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.declared_arguments import list_sizes
from fa4gen.runtime.schedule import given_list_bytes, plan_schedule
from fa4gen.runtime.tensor_map import describe
from fa4gen.runtime.tile_list import ENTRY_BYTES
from fa4gen.verify import tolerance
from fa4gen.verify.cases import (
    Case,
    default_cases,
    emulated_cases,
    large_cases,
    unique,
)
from fa4gen.verify.edges.attention import edge_cases, edges, reached
from fa4gen.verify.family import EmulatedLaunch, SteadyWork
from fa4gen.verify.given_blocks import block_cases, draw_blocks
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.memory import place, read_lse, read_max_logits, read_out
from fa4gen.verify.page_scales import page_scale_cases, with_page_scales
from fa4gen.verify.reference import (
    AttentionProblem,
    AttentionResult,
    MaxLogits,
    exact_attention,
    rounded_attention,
)
from fa4gen.verify.ring_cases import attention_further, attention_rings
from fa4gen.verify.rounding import Precision
from fa4gen.verify.score_tiles import score_tiles
from fa4gen.verify.sequence_tensors import (
    by_sequence,
    draw_tables,
    drawn_rows,
    in_one_tensor,
    in_place,
    packed_rows,
    read_back,
    sequence_parts,
)
from fa4gen.verify.split_cases import small_split_cases, split_cases
from fa4gen.verify.unread import with_nan, with_nan_head, without_nan_head, without_pages
from fa4gen.verify.work_done import attention_tiles, rescales_of
from fa4gen.verify.workspace import COUNTERS, Kept, workspace
from fa4gen.verify.wrong_numbers import wrong_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.runtime.tensor_view import TensorView
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.edges.edge import Edge
    from fa4gen.verify.exercise import Wanted
    from fa4gen.verify.inputs import Inputs
    from fa4gen.verify.memory import AttentionMemory
    from fa4gen.verify.tolerance import Errors
    from fa4gen.verify.verdict import Failure
    from fa4gen.verify.work_done import Rescales, Tiles


@dataclass(frozen=True)
class AttentionFamily:
    """The verify family of attention kernels; see ``family``."""

    plan: AttentionPlan

    def default_cases(self) -> tuple[Case, ...]:
        """Return the cases for a GPU."""
        plan = self.plan
        own = (*default_cases(plan), *split_cases(plan), *page_scale_cases(plan))
        own = (*own, *block_cases(plan))
        cases = as_called(plan, own)
        return as_called(plan, (*cases, *edge_cases(plan, cases)))

    def emulated_cases(self) -> tuple[Case, ...]:
        """Return the cases for the emulator."""
        plan = self.plan
        own = (*small_split_cases(plan), *page_scale_cases(plan), *attention_rings(plan))
        own = (*own, *block_cases(plan))
        cases = as_called(plan, (*emulated_cases(plan), *own))
        return as_called(plan, (*cases, *edge_cases(plan, cases)))

    def further_cases(self, wanted: Wanted) -> tuple[Case, ...]:
        """Return further cases for code that the emulator's cases did not reach."""
        return as_called(self.plan, attention_further(self.plan, wanted))

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges of the plan."""
        return edges(self.plan)

    def reached(self, case: Case) -> frozenset[str]:
        """Return the names of the edges that a case is at."""
        return reached(self.plan, case)

    def cost(self, case: Case) -> float:
        """Return the emulator's approximate time."""
        blocks = score_tiles(self.plan, case)
        plan = self.plan
        tiles = sum(-(-rows // plan.tile_queries) for rows, _ in case.sequences)
        tiles *= case.query_heads // plan.tile_heads
        return blocks["full"] + blocks["partial"] + tiles

    def score_tiles(self, case: Case) -> dict[str, int]:
        """Count blocks of keys by whether the mask leaves all, some or none of them."""
        return score_tiles(self.plan, case)

    def tiles(self, case: Case, coverage: Coverage) -> Tiles | None:
        """Return the numbers of tiles that CTAs processed."""
        del case
        return attention_tiles(coverage)

    def rescales(self, coverages: Iterable[Coverage]) -> Rescales | None:
        """Count lazy rescaling."""
        return rescales_of(self.plan, coverages)

    def large_cases(self) -> tuple[Case, ...]:
        """Return the cases with a reference computed on the GPU."""
        return as_called(self.plan, large_cases())

    def steady_work(self, ctas: int, blocks: int) -> SteadyWork:
        """Return one tile of queries for each CTA: with fewer, some kernels make them smaller."""
        plan, heads = self.plan, ctas // self.plan.cta_group
        rows = plan.tile_queries * plan.cta_group
        case = Case("timeline", 1, heads * plan.tile_heads, heads, rows, blocks * plan.BN)
        (case,) = as_called(plan, [case])
        return SteadyWork(case, f"one tile of queries, {blocks} blocks of keys", blocks)

    def draw(self, case: Case, seed: int) -> DrawnAttention:
        """Draw query, key, value and scales."""
        plan = self.plan
        rng = make_rng(seed, case.name)
        inputs = make_inputs(
            case,
            plan.depth,
            plan.dtype,
            rng,
            value_depth=plan.value_depth,
            kv_dtype=plan.kv_dtype,
            descaled=() if plan.has_page_scales else plan.descaled,
            has_sinks=plan.sinks,
            packed=drawn_rows(plan),
            tensors=plan.declared_tensors,
            values_in_keys=plan.values_in_keys,
            has_max_logits=plan.max_logits,
        )
        if plan.lists_blocks:
            inputs = replace(inputs, tensors={**inputs.tensors, **_lists(plan, inputs)})
        if plan.takes_blocks:
            named = draw_blocks(plan, case.sequences, case.query_heads, case.key_heads, rng)
            inputs = replace(inputs, tensors={**inputs.tensors, **named})
        tables = draw_tables(plan, case.sequences, rng, shared_pages=case.shared_pages)
        if case.shared_pages:
            whole = (in_place(plan, case, x, tables) for x in (inputs.key, inputs.value))
            own_key, own_value = (read_back(plan, case, x, tables) for x in whole)
            inputs = replace(inputs, key=own_key, value=own_value)
        given: Any = (inputs.key, inputs.value)
        if not case.shared_pages:  # keys that one sequence does not see may be seen by another
            given = with_nan(plan, inputs, case.sequences)
        key, value = (in_place(plan, case, x, tables) for x in given)
        if plan.has_page_scales:
            inputs = with_page_scales(plan, case, inputs, tables, rng, key.shape[0])
        tables = without_pages(plan, tables, inputs, case.sequences, key.shape[0])
        query = with_nan_head(inputs.query) if case.nan_head else inputs.query
        passed = {name: one for name, one in inputs.tensors.items() if name != SEEN_BLOCKS}
        placed = replace(inputs, query=query, key=key, value=value, tensors=passed)
        memory = place(
            in_one_tensor(plan, case),
            placed,
            plan.dtype,
            lse=plan.lse,
            kv_dtype=plan.kv_dtype,
            out_dtype=plan.out_dtype,
            packed=packed_rows(plan),
            tables=tables,
            values_in_keys=plan.values_in_keys,
            lines_of_keys=plan.has_lines_of_keys,
        )
        group = case.keys_of_group if plan.is_ragged and case.group else case.group
        memory = replace(memory, multiprocessors=case.multiprocessors, group=group, far=case.far)
        return DrawnAttention(plan, inputs, rng, memory, case.sequences, nan_head=case.nan_head)

    def gpu_kernel(self, cubin: bytes) -> Any:
        """Return an AttentionKernel."""
        from fa4gen.runtime.attention import AttentionKernel

        return AttentionKernel(self.plan, cubin)

    def call(self, kernel: Any, arrays: Mapping[str, Any], memory: AttentionMemory) -> None:
        """Call an AttentionKernel."""
        kernel(
            arrays["query"],
            arrays["key"],
            arrays["value"],
            out=arrays["out"],
            lse=arrays.get("lse"),
            softmax_scale=memory.softmax_scale,
            layout=memory.layout,
            **{name: arrays.get(name) for name in OPTIONAL},
            **{name.removeprefix(GIVEN): arrays[name] for name in self.plan.given_names},
        )

    def emulated_launch(
        self, views: Mapping[str, TensorView], memory: AttentionMemory, multiprocessors: int
    ) -> EmulatedLaunch | None:
        """Check the arguments and return the launch as the launcher would."""
        plan = self.plan
        scale = plan.depth**-0.5 if memory.softmax_scale is None else memory.softmax_scale
        checked = check_arguments(
            plan,
            Arguments(
                views["query"], views["key"], views["value"], views["out"], views.get("lse"),
                scale, memory.layout, **{name: views.get(name) for name in OPTIONAL},
                tensors=tuple(
                    (name.removeprefix(GIVEN), views.get(name)) for name in plan.given_names
                ),
            ),
        )  # fmt: skip
        schedule = plan_schedule(plan, checked.size, multiprocessors)
        if not schedule.grid:
            return None
        if memory.group is not None and plan.is_ragged:
            schedule = replace(schedule, group_keys=memory.group)
        elif memory.group is not None:
            heads = min(memory.group, checked.size.all_heads // plan.tile_heads)
            schedule = replace(schedule, heads_per_group=heads)
        maps = {
            row.parameter: describe(
                row, checked.tensor(row.tensor), fallback_pointer=checked.query.pointer
            )
            for row in plan.tensor_maps
        }
        values: dict[str, Any] = {**scalar_values(checked, schedule)}
        kept = {"tile_counter": Kept(COUNTERS)}
        if plan.splits_keys:
            kept |= workspace(plan, schedule)
        if plan.takes_blocks:
            words = given_list_bytes(plan, checked.size) // 4
            values["tile_list"] = np.full(words, -1, np.int32)
        elif plan.tile_list is not None:
            words = ENTRY_BYTES // 4 * (1 + schedule.tiles_per_head)
            values["tile_list"] = np.full(words, -1, np.int32)
        pointers = ("query", "out", "lse", *OPTIONAL, *plan.given_names)
        return EmulatedLaunch(schedule.grid, values, maps, pointers, kept)


@dataclass(frozen=True)
class DrawnAttention:
    """A case with its inputs."""

    plan: AttentionPlan
    inputs: Inputs
    rng: np.random.Generator
    memory: AttentionMemory
    sequences: tuple[tuple[int, int], ...]
    """Query rows and keys of each."""
    nan_head: bool = False

    def reference(self, xp: Any) -> AttentionReference:
        """Compute the kernel's expected results."""
        made = make_reference(self.plan, self.inputs, self.rng, xp, self.sequences)
        return replace(made, nan_head=self.nan_head)


@dataclass(frozen=True)
class AttentionReference:
    """The exact result of a case, and how far a kernel's may be from it."""

    exact: AttentionResult
    own: Errors
    bounds: Errors
    nan_head: bool = False
    """The results of the head with NaN may be anything; see ``Case``."""

    def compare(
        self, memory: AttentionMemory, after: Mapping[str, Image], xp: Any
    ) -> tuple[Errors, tuple[Failure, ...]]:
        """Return the errors of a kernel's results, and those above their bounds."""
        lse, max_logits = read_lse(memory, after), read_max_logits(memory, after)
        got = AttentionResult(
            xp.asarray(read_out(memory, after)),
            None if lse is None else xp.asarray(lse),
            max_logits=None if max_logits is None else xp.asarray(max_logits),
        )
        if self.nan_head:
            got = without_nan_head(got, self.exact, xp)
        errors = tolerance.measure(got, self.exact, xp)
        return errors, tuple(wrong_numbers(got, self.exact, errors, self.bounds, xp))


def make_reference(
    plan: AttentionPlan,
    inputs: Inputs,
    rng: np.random.Generator,
    xp: Any,
    sequences: tuple[tuple[int, int], ...] = (),
) -> AttentionReference:
    """Compute the exact results for ``inputs``, and the bounds on a kernel's errors.

    ``sequences``: query rows and keys of each, for kernels that take sequences of any lengths.
    """
    problem = AttentionProblem.of(plan, inputs.softmax_scale)
    query, key, value = (xp.asarray(x) for x in (inputs.query, inputs.key, inputs.value))
    precision, sinks = Precision.of(plan), inputs.sinks
    ends: Any = {"intervals": precision if inputs.counting else None, "raised": inputs.raised}
    ends |= {"has_max_logits": plan.max_logits, "cut_sums": precision.sums}
    if inputs.counting:  # no maximum that a kernel may scale by leaves a rounding
        precision = replace(precision, rescale_threshold=0.0)
    descales = inputs.key_descales if plan.has_page_scales else inputs.descales
    tensors = {name: xp.asarray(array) for name, array in inputs.tensors.items()}
    more: Any = {"descales": descales, "sinks": sinks, "tensors": tensors}
    if plan.has_tile_lengths:
        parts = sequence_parts(plan, sequences)

        def of(number: int) -> Any:
            """Return the further inputs of a sequence's computation: its own scales."""
            scales = {name: array[number : number + 1] for name, array in descales.items()}
            if plan.has_page_scales:
                rows = parts[number].key[1]
                scales = {name: array[None, rows] for name, array in descales.items()}
                if "query" in inputs.descales:  # those of sequences, as they are without pages
                    scales["query"] = inputs.descales["query"][number : number + 1]
            return {**more, "descales": scales, "first_batch": number}

        exact = by_sequence(
            lambda i, q, k, v: exact_attention(problem, q, k, v, xp, **of(i), **ends),
            parts, query, key, value, xp,
        )  # fmt: skip
        rounded = by_sequence(
            lambda i, q, k, v: rounded_attention(problem, q, k, v, precision, rng, xp, **of(i)),
            parts, query, key, value, xp,
        )  # fmt: skip
    else:
        exact = exact_attention(problem, query, key, value, xp, **more, **ends)
        rounded = rounded_attention(problem, query, key, value, precision, rng, xp, **more)
    if plan.max_logits:
        before, found = xp.asarray(inputs.max_logits, xp.float64), exact.max_logits
        found = MaxLogits.none(len(before), xp) if found is None else found
        found = found.raised(MaxLogits(before, before, before), xp)
        exact = replace(exact, max_logits=found)
    own = tolerance.measure(rounded, exact, xp)
    of_scores = None if inputs.equal_logits else value
    bounds = tolerance.bounds(
        own, exact, problem, query, key, precision, xp, descales=descales, value=of_scores
    )
    return AttentionReference(exact, own, bounds)


def _lists(plan: AttentionPlan, inputs: Inputs) -> dict[str, Any]:
    """Return the lists of blocks that the call gets, by name."""
    sizes = list_sizes(plan, inputs.query.shape, inputs.key.shape)
    return list_blocks(plan.mask, sizes, inputs.tensors, np)


def as_called(plan: AttentionPlan, cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cases with the heads and rows that a call of ``plan`` may have, each once.

    A key head has a multiple of the query heads whose rows share a tile. Where the mask limits the
    query rows, cases with more are cut to the limit, and renamed.
    """
    return unique(_with_fewer_rows(plan, _with_more_heads(plan, case)) for case in cases)


def _with_more_heads(plan: AttentionPlan, case: Case) -> Case:
    if case.query_heads // case.key_heads % plan.tile_heads == 0:
        return case
    return replace(case, query_heads=plan.tile_heads * case.query_heads)


def _with_fewer_rows(plan: AttentionPlan, case: Case) -> Case:
    most = plan.mask.most_rows
    if most is None or all(rows <= most for rows, _ in (*case.sequences, (case.query_rows, 0))):
        return case
    return replace(
        case,
        name=f"{case.name}_of_{most}_rows",
        query_rows=min(case.query_rows, most),
        key_rows=most if case.layout == "packed" else case.key_rows,  # rows of one tensor
        lengths=tuple((min(rows, most), keys) for rows, keys in case.lengths),
    )
