"""Attention forward in float64, and the same computation with a kernel's roundings.

Both take the same inputs: float32 arrays (batch, rows, heads, depth) that hold values of the
kernel's element type exactly, value and output with a depth of their own, and the scales that come
with fp8. Query head h reads key head h // (query heads / key heads).
``xp`` is the array module, numpy or cupy: on a GPU the float64 reference of long sequences is fast
enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.instructions.mma.cut_sums import SUM_BITS
from fa4gen.expressions.places import Places
from fa4gen.verify.cut_sums import SCORE_UNITS, CutSums
from fa4gen.verify.key_scales import powers_of, times
from fa4gen.verify.rounding import round_to
from fa4gen.verify.weight_ends import WeightedSums, output_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score
    from fa4gen.verify.input_kinds import Floats
    from fa4gen.verify.rounding import Precision

    Descales = Mapping[str, Any]
    """Scales (batch, key heads) on the host, of "query", "key" and "value"; absent ones are 1.
    Where keys of a sequence have scales of their own, (batch, keys, key heads)."""

CPU_CHUNK = 1 << 18
"""Scores that are computed at a time on a CPU: they fit its caches."""
GPU_CHUNK = 1 << 26
MMA_BYTES = 32
"""The bytes of each operand whose products a tensor core adds at a time."""
MAX_LOGIT_ROUNDING = 2.0**-21
"""The most that scaling a largest score in float32 changes it by, relative to it."""
LARGEST_SHIFT = 50.0
"""The largest shift of a score by its errors: more is as bad."""


@dataclass(frozen=True)
class AttentionProblem:
    """The computation of a call, except for its tensors' values."""

    mask: Mask
    score: Score
    softmax_scale: float
    sum_error: float = 0.0
    """The error of a product q.k, relative to the largest partial sum, |q| |k|."""

    @classmethod
    def of(cls, plan: AttentionPlan, softmax_scale: float) -> AttentionProblem:
        """Return the problem that the kernel of ``plan`` solves."""
        units = plan.depth * plan.element_bytes / MMA_BYTES + 3
        error, sums = units * 2.0**-23, CutSums.of(plan)
        if sums is not None:
            error += SCORE_UNITS * 2.0**-SUM_BITS
        return cls(plan.seen_mask, plan.score, softmax_scale, error)

    def visible_keys(self, query_rows: int, key_rows: int) -> tuple[Any, Any]:
        """First visible key, and one past the last, of every query row (none: second not larger).

        The diagonal ends in the bottom right corner: row i is at key i + key_rows - query_rows.
        """
        position = np.arange(query_rows, dtype=np.int64) + (key_rows - query_rows)
        first, end = self.mask.bounds(position, key_rows)
        return np.clip(first, 0, key_rows), np.clip(end, 0, key_rows)


@dataclass(frozen=True)
class MaxLogits:
    """The largest logit of each query head, float64 (heads), and what rounding may make of it."""

    exact: Any
    low: Any
    high: Any

    @classmethod
    def none(cls, heads: int, xp: Any) -> MaxLogits:
        """Return those of heads without a logit."""
        return cls(*(xp.full(heads, -xp.inf) for _ in range(3)))

    def raised(self, before: Any, xp: Any) -> MaxLogits:
        """Return the larger ones of these and others, of earlier calls or of other sequences."""
        pairs = zip(vars(self).values(), vars(before).values(), strict=True)
        return MaxLogits(*(xp.maximum(own, other) for own, other in pairs))


@dataclass(frozen=True)
class AttentionResult:
    """Output (batch, rows, heads, value depth) and natural log-sum-exp (batch, heads, rows)."""

    out: Any
    lse: Any
    shift: Any = None
    """(batch, heads, rows): how far float32 may move a row's log-sum-exp through its scores; None
    where the score function's own bound says it."""
    low: Any = None
    """The least that each element of the output may be, rounded to its type; None where values may
    be negative, so that they cancel."""
    high: Any = None
    """The most."""
    max_logits: Any = None
    """``MaxLogits`` of an exact result; of a kernel its float32 (heads); None where it has none."""

    @property
    def exact(self) -> Any:
        """The output, as intervals know it."""
        return self.out


def exact_attention(
    problem: AttentionProblem,
    query: Any,
    key: Any,
    value: Any,
    xp: Any = np,
    *,
    descales: Descales | None = None,
    sinks: Floats | None = None,
    tensors: Mapping[str, Any] | None = None,
    first_batch: int = 0,
    intervals: Precision | None = None,
    raised: tuple[int, int] = (0, 0),
    has_max_logits: bool = False,
    cut_sums: CutSums | None = None,
) -> AttentionResult:
    """Compute in float64. Rows that see no key give zeros and -inf.

    ``tensors``: the ones that mask and score function read; ``first_batch``: number of the first
    one.

    ``sinks``: a logit for each query head, one more term of the softmax's sum. ``intervals``: for
    values that are not negative, the range of elements with these roundings; ``raised``: the keys,
    first and past the last, whose weights are rounded by a maximum of their own.
    ``has_max_logits``: also the largest logit of each head, of these rows and keys; ``cut_sums``:
    how the tensor cores sum its products, where they keep few bits.
    """
    out = xp.zeros((*query.shape[:3], value.shape[3]), dtype=xp.float64)
    lse = _lse_of_no_key(query, sinks, xp, xp.float64)
    shift = xp.zeros(_lse_shape(query)) if problem.score.IS_EXPRESSION else None
    low: Any = None if intervals is None else xp.zeros_like(out, xp.float32)
    high: Any = None if intervals is None else xp.zeros_like(out, xp.float32)
    max_logits = MaxLogits.none(query.shape[2], xp) if has_max_logits else None
    for block in _blocks(problem, query, key, value, descales or {}, xp, tensors, first_batch):
        q, k, v = (x.astype(xp.float64) for x in (block.query, block.key, block.value))
        scores = times(q @ k.T, block.key_scales) * (problem.softmax_scale * block.score_descale)
        logits = scores
        scores = problem.score.exact(logits, xp, block.places)
        scores[block.hidden] = -xp.inf
        sink = -math.inf if sinks is None else float(sinks[block.head])
        largest = _finite(xp.maximum(scores.max(axis=1, keepdims=True), sink), xp)
        weights = xp.exp(scores - largest)
        total = weights.sum(axis=1, keepdims=True) + xp.exp(sink - largest)
        sums = times(weights, block.value_scales) @ v
        out[block.out_index] = sums / _nonzero(total, xp) * block.value_descale
        with np.errstate(divide="ignore"):  # -inf of rows that see no key
            lse[block.lse_index] = (largest + xp.log(total))[:, 0]
        if intervals is not None:
            errors = problem.score.error
            if shift is not None:  # the sums of these logits make no error
                errors = problem.score.errors(logits, xp.zeros_like(logits), xp, block.places)
                errors = xp.where(block.hidden, 0.0, xp.minimum(errors, LARGEST_SHIFT))
            if intervals.sums is not None:
                room = times(intervals.sums.score_room(q, k, xp), block.key_scales)
                errors = errors + abs(problem.softmax_scale * block.score_descale) * room
            keys, (begin, end) = block.places.key, raised
            own = (keys >= begin) & (keys < end) if end > begin else None
            found = WeightedSums(weights, block.value_scales, v, sums, total, own)
            both = output_ends(found, errors, intervals, xp)
            for array, end in zip((low, high), both, strict=True):
                end = (end * block.value_descale).astype(xp.float32)
                array[block.out_index] = round_to(end, intervals.out_dtype, xp)
        if shift is not None or max_logits is not None:
            scale = abs(problem.softmax_scale * block.score_descale)
            sum_errors = _lengths(q)[:, None] * _lengths(k)[None] * scale * problem.sum_error
            off = sum_errors + problem.score.error
            if shift is not None:
                off = problem.score.errors(logits, sum_errors, xp, block.places)
        if max_logits is not None:
            seen = scores[~block.hidden]
            if cut_sums is not None:
                off = off + scale * cut_sums.score_room(q, k, xp)
            room = off[~block.hidden] + xp.abs(seen) * MAX_LOGIT_ROUNDING
            for largest_of, room_of in zip(
                vars(max_logits).values(), (0, -room, room), strict=True
            ):
                largest_of[block.head] = max(largest_of[block.head], (seen + room_of).max())
        if shift is not None:
            errors = xp.minimum(xp.where(block.hidden, 0.0, off), LARGEST_SHIFT)
            shifted = (weights * xp.expm1(errors)).sum(axis=1, keepdims=True)
            shift[block.lse_index] = (shifted / _nonzero(total, xp))[:, 0]
    return AttentionResult(out, lse, shift, low, high, max_logits)


def rounded_attention(
    problem: AttentionProblem,
    query: Any,
    key: Any,
    value: Any,
    precision: Precision,
    rng: np.random.Generator,
    xp: Any = np,
    *,
    descales: Descales | None = None,
    sinks: Floats | None = None,
    tensors: Mapping[str, Any] | None = None,
    first_batch: int = 0,
) -> AttentionResult:
    """Compute as a kernel does: float32, probabilities and output rounded to their types.

    Its distance from the exact result is the error that this computation has in its own precision.
    An online softmax may subtract a maximum that is too small by up to ``rescale_threshold`` powers
    of two, which shifts the rounding of the probabilities; each row gets a random shift.
    """
    log2_e = math.log2(math.e)
    out = xp.zeros((*query.shape[:3], value.shape[3]), dtype=xp.float32)
    lse = _lse_of_no_key(query, sinks, xp, xp.float32)
    shift = np.float32(precision.probability_shift)
    lags = rng.uniform(0, precision.rescale_threshold, size=_lse_shape(query)).astype(np.float32)
    for block in _blocks(problem, query, key, value, descales or {}, xp, tensors, first_batch):
        scores = times(_product(block.query, block.key.T, precision, xp), block.key_scales)
        scale = problem.softmax_scale * block.score_descale
        scores, scale = problem.score.rounded(scores, scale, xp, block.places)
        scores *= np.float32(scale * log2_e)
        powers, factors = powers_of(block.value_scales, precision.zero_scale_log2, xp)
        scores += powers
        scores[block.hidden] = -xp.inf
        stale = (
            _finite(scores.max(axis=1, keepdims=True), xp)
            - xp.asarray(lags[block.lse_index])[:, None]
        )
        stale -= shift
        weights = xp.exp2(scores - stale)
        total = (weights * xp.exp2(-powers)).sum(axis=1, keepdims=True)
        rounded = round_to(weights * factors, precision.dtype, xp)
        part = precision.sums.part_keys if precision.sums else None
        sums = _product(rounded, block.value, precision, xp, part=part, backwards=True)
        block_out = sums / _nonzero(total, xp)
        with np.errstate(divide="ignore"):  # -inf of rows that see no key
            total_log2 = stale + xp.log2(total)
        if sinks is not None:
            sink = np.float32(sinks[block.head] * np.float32(log2_e))
            with np.errstate(over="ignore"):  # a sink so large leaves 0
                block_out /= 1 + xp.exp2(sink - total_log2)
            total_log2 = xp.logaddexp2(total_log2, sink)
        block_out *= np.float32(block.value_descale)
        out[block.out_index] = round_to(block_out, precision.out_dtype, xp)
        lse[block.lse_index] = (total_log2 * np.float32(math.log(2)))[:, 0]
    return AttentionResult(out, lse)


@dataclass(frozen=True)
class _Block:
    """Neighbouring rows of one head that see keys, and the keys that any of them sees."""

    query: Any
    key: Any
    value: Any
    hidden: Any
    """(rows, keys): True where the row does not see the key."""
    score_descale: float
    """The scale of query times key."""
    value_descale: float
    key_scales: Any
    """The scale of each key, float32; None where keys have none of their own."""
    value_scales: Any
    places: Places
    """The places of the scores."""
    out_index: tuple[int, slice, int]
    lse_index: tuple[int, int, slice]

    @property
    def head(self) -> int:
        """Query head."""
        return self.lse_index[1]


def _blocks(
    problem: AttentionProblem,
    query: Any,
    key: Any,
    value: Any,
    descales: Descales,
    xp: Any,
    tensors: Mapping[str, Any] | None,
    first_batch: int,
) -> Iterator[_Block]:
    batches, query_rows, query_heads, _ = query.shape
    _, key_rows, key_heads, _ = key.shape
    if not (query.size and key.size):
        return
    first, end = problem.visible_keys(query_rows, key_rows)
    seeing = np.flatnonzero(end > first)
    if not seeing.size:
        return
    # first and end never fall from row to row: the rows that see a key are neighbours.
    begin, stop = int(seeing[0]), int(seeing[-1]) + 1
    chunk = max(1, (CPU_CHUNK if xp is np else GPU_CHUNK) // key_rows)
    for rows in (slice(i, min(i + chunk, stop)) for i in range(begin, stop, chunk)):
        low, high = int(first[rows.start]), int(end[rows.stop - 1])
        columns = xp.arange(low, high)
        hidden = (columns < xp.asarray(first[rows])[:, None]) | (
            columns >= xp.asarray(end[rows])[:, None]
        )
        position = xp.arange(rows.start, rows.stop)[:, None] + (key_rows - query_rows)
        row = xp.arange(rows.start, rows.stop)[:, None]
        outside = hidden
        if not problem.mask.reads_places:
            hidden = outside | xp.logical_not(problem.mask.sees_within(position, columns, xp))
        for batch in range(batches):
            for head in range(query_heads):
                key_head = head * key_heads // query_heads
                places = Places(
                    position, columns, row, head, key_head, first_batch + batch, tensors or {}
                )
                if problem.mask.reads_places:
                    hidden = outside | xp.logical_not(problem.mask.sees_at(places, xp))
                own = {
                    name: xp.asarray(array[batch, low:high, key_head])
                    for name, array in descales.items()
                    if array.ndim == 3
                }
                q_descale, k_descale, v_descale = (
                    float(descales[name][batch, key_head])
                    if name in descales and name not in own
                    else 1.0
                    for name in ("query", "key", "value")
                )
                yield _Block(
                    xp.ascontiguousarray(query[batch, rows, head]),
                    xp.ascontiguousarray(key[batch, low:high, key_head]),
                    xp.ascontiguousarray(value[batch, low:high, key_head]),
                    hidden,
                    q_descale * k_descale,
                    v_descale,
                    own.get("key"),
                    own.get("value"),
                    places,
                    (batch, rows, head),
                    (batch, head, rows),
                )


def _product(a: Any, b: Any, precision: Precision, xp: Any, **walk: Any) -> Any:
    """Return a . b in float32, with the bits that the tensor cores cut off."""
    if precision.sums is None:
        return a @ b
    return precision.sums.products(a, b, xp, **walk).astype(xp.float32)


def _lengths(rows: Any) -> Any:
    """Return the Euclidean lengths of rows."""
    return (rows * rows).sum(axis=1) ** 0.5


def _finite(largest: Any, xp: Any) -> Any:
    """Return the maxima of rows; 0 for rows of which the mask leaves no score."""
    return xp.where(xp.isneginf(largest), xp.zeros_like(largest), largest)


def _nonzero(total: Any, xp: Any) -> Any:
    """Return sums to divide by."""
    return xp.where(total == 0, xp.ones_like(total), total)


def _lse_of_no_key(query: Any, sinks: Floats | None, xp: Any, dtype: Any) -> Any:
    """Return the log-sum-exp of rows that see no key, for all rows."""
    lse = xp.full(_lse_shape(query), -xp.inf, dtype=dtype)
    if sinks is not None:
        lse[:] = xp.asarray(sinks, dtype=dtype)[None, :, None]
    return lse


def _lse_shape(query: Any) -> tuple[int, int, int]:
    batch, rows, heads, _ = query.shape
    return batch, heads, rows
