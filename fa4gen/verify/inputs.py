"""The inputs of a case: drawn from a seed, rounded to the kernel's element type.

Every kind of data has a name (``KINDS``); a kind is chosen to strain one part of the kernel.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.input_kinds import (
    COUNTING_KINDS,
    EQUAL_HIGH,
    KINDS,
    LN2,
    RAISED,
    SCALES,
    Draft,
    Floats,
)
from fa4gen.verify.rounding import round_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fa4gen.expressions.tensors import Tensor
    from fa4gen.verify.cases import Case

DESCALE_RANGE = (0.5, 2.0)
SINK_ROWS = 15
"""The approximate number of rows whose log-sum-exp places the sinks."""
MOST_ABOVE = 60.0
"""The most of a sink above the least logit: the output of a row that sees that key alone is then at
least exp(-87), above the subnormal float32 numbers, which may be flushed to zero."""


@dataclass(frozen=True)
class Inputs:
    """Values of the element type as float32, (batch, rows, heads, depth); see make_inputs."""

    query: Floats
    key: Floats
    value: Floats
    softmax_scale: float
    scale_is_default: bool
    """The call passes no scale, and the launcher's default must be this one."""
    descales: Mapping[str, Floats] = field(default_factory=dict)
    """(batch or pages, key heads), of "query", "key" and "value"; those left out are not passed."""
    key_descales: Mapping[str, Floats] = field(default_factory=dict)
    """The scale of each key, where scales are those of pages: (rows, key heads)."""
    sinks: Floats | None = None
    """(query heads); None for a kernel without them."""
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Those that mask and score function read, float32 or int32."""
    max_logits: Floats | None = None
    """(query heads), before the call; None for a kernel that raises none."""
    counting: bool = False
    """No value is negative, logits are whole multiples of ln 2; see ``input_kinds``."""
    equal_logits: bool = False
    """All logits of a row are equal: their rounding does not reach its output."""
    raised: tuple[int, int] = (0, 0)
    """Keys of a sequence, from the first to before the second, with logits that are whole multiples
    above its largest."""


def draw_scales(
    name: str, shape: tuple[int, ...], rng: np.random.Generator, *, counting: bool
) -> Floats:
    """Draw the scales of query, key or value; of data that count those that keep logits whole."""
    drawn = rng.choice(SCALES[name], shape) if counting else rng.uniform(*DESCALE_RANGE, shape)
    return drawn.astype(np.float32)


def draw_sinks(draft: Draft) -> Floats:
    """Draw a logit for each query head, most of them near the log-sum-exp of the head's rows.

    Some weigh much more than the keys, some nothing, and some are -inf.
    """
    heads = draft.query.shape[2]
    scores = [_some_scores(draft, head) for head in range(heads)]
    sinks = np.array([np.logaddexp.reduce(x, axis=1).min() for x in scores], np.float64)
    sinks += draft.rng.normal(0.0, 2.0, heads) + draft.rng.choice([0, 0, 0, 6, -30], heads)
    sinks = np.minimum(sinks, [x.min() + MOST_ABOVE for x in scores])
    sinks[draft.rng.random(heads) < 0.1] = -np.inf
    return sinks.astype(np.float32)


def draw_max_logits(heads: int, rng: np.random.Generator) -> Floats:
    """Draw the largest logits of earlier calls: high and low, and none for every other head."""
    drawn = rng.choice([-1e30, -1.0, 0.0, 1.0, 1e30], heads)
    drawn[::2] = -np.inf
    return drawn.astype(np.float32)


def _some_scores(draft: Draft, head: int) -> NDArray[np.float64]:
    """Return logits (rows, keys) of some rows of ``head``; zeros without any."""
    if not (draft.query.size and draft.key.size):
        return np.zeros((1, 1))
    key_head = head * draft.key.shape[2] // draft.query.shape[2]
    rows = draft.query[0, :, head].astype(np.float64)
    keys = draft.key[0, :, key_head]
    scores: NDArray[np.float64] = rows[:: max(1, len(rows) // SINK_ROWS)] @ keys.T * draft.scale
    return scores


def make_rng(seed: int, case_name: str) -> np.random.Generator:
    """Return the generator of a case: its numbers do not depend on which other cases run."""
    return np.random.default_rng([seed, zlib.crc32(case_name.encode())])


def make_inputs(
    case: Case,
    depth: int,
    dtype: str,
    rng: np.random.Generator,
    *,
    value_depth: int | None = None,
    kv_dtype: str | None = None,
    descaled: Sequence[str] = (),
    has_sinks: bool = False,
    packed: tuple[bool, bool] = (False, False),
    tensors: Sequence[Tensor] = (),
    values_in_keys: bool = False,
    has_max_logits: bool = False,
) -> Inputs:
    """Draw the inputs of ``case`` for a kernel of this depth and element type.

    Values have the depth of the keys unless ``value_depth`` says otherwise, keys and values the
    type of the query unless ``kv_dtype`` does. Scales are drawn for the tensors in ``descaled``
    that the case names; with ``has_sinks`` a logit for each query head. ``packed``: whether the
    rows of all sequences are one batch, of queries and of keys. ``values_in_keys``: the first
    columns of the keys are the values. ``has_max_logits``: the call raises a number of each head.
    """
    batches, rows = _rows(case, 0, packed[0])
    key_batches, keys = _rows(case, 1, packed[1])
    query_shape = (batches, rows, case.query_heads, depth)
    key_shape = (key_batches, keys, case.key_heads, depth)
    value_shape = (*key_shape[:3], depth if value_depth is None else value_depth)
    query, key, value = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in (query_shape, key_shape, value_shape)
    )
    default = depth**-0.5
    scale = default if case.softmax_scale is None else case.softmax_scale
    draft = Draft(
        rng, dtype, kv_dtype or dtype, query, key, value, scale, values_in_keys, case.raised
    )
    KINDS[case.data](draft)
    draft.clip()
    counting = case.data in COUNTING_KINDS
    key = round_to(draft.key, draft.kv_dtype)
    sinks = draw_sinks(draft) if has_sinks else None
    if counting and sinks is not None:
        sinks = (np.rint(sinks / LN2) * LN2).astype(np.float32)
    return Inputs(
        round_to(draft.query, dtype),
        key,
        key[..., : value.shape[3]] if values_in_keys else round_to(draft.value, draft.kv_dtype),
        draft.scale,
        scale_is_default=draft.scale == default,
        descales={
            name: draw_scales(name, (case.batch, case.key_heads), rng, counting=counting)
            for name in case.descales
            if name in descaled
        },
        sinks=sinks,
        tensors={tensor.name: draw_tensor(tensor, case, rng) for tensor in tensors},
        max_logits=draw_max_logits(case.query_heads, rng) if has_max_logits else None,
        counting=counting,
        equal_logits=case.data == EQUAL_HIGH,
        raised=case.raised if case.data == RAISED else (0, 0),
    )


def draw_tensor(tensor: Tensor, case: Case, rng: np.random.Generator) -> NDArray[Any]:
    """Draw a declared tensor of a case.

    Floats are like scores. Whole numbers are those of documents along rows or keys, in order and
    each of some length, in one batch of three longer than blocks of keys; else any that may be a
    number of keys, and half of them 0 where an axis is neither of rows nor keys, as of blocks.
    """
    extents = {
        "batch": case.batch,
        "query_heads": case.query_heads,
        "key_heads": case.key_heads,
        "rows": case.query_rows,
        "keys": case.key_rows,
    }
    shape = tuple(extents[one] if isinstance(one, str) else one for one in tensor.shape)
    if case.tensors == "runs" and tensor.dtype == "int32" and tensor.shape[-1] in ("rows", "keys"):
        return _runs(shape)
    if case.tensors == "first":
        first = np.zeros(shape, np.float32 if tensor.dtype == "fp32" else np.int32)
        first[:1] = 1
        return first
    if case.tensors != "drawn":
        return _wild(tensor, shape, rng)
    if tensor.dtype == "fp32":
        drawn = rng.normal(0.0, 0.5, shape)
        if case.data in COUNTING_KINDS:  # such a bias leaves weights powers of two
            drawn = np.rint(2 * drawn) * LN2
        return drawn.astype(np.float32)
    if tensor.shape[-1] in ("rows", "keys"):
        is_long = rng.random((*shape[:-1], 1)) < 1 / 3
        length = np.where(is_long, shape[-1] // 2, min(100, shape[-1] // 4))
        begins = rng.random(shape) < 1 / np.maximum(2, length)
        return np.cumsum(begins, axis=-1).astype(np.int32)
    lengths = rng.integers(0, case.key_rows + 20, shape)
    if len(shape) > 1 and isinstance(tensor.shape[-1], int):
        lengths *= rng.random(shape) < 0.5
    return lengths.astype(np.int32)


WILD = (1.0, -0.25, 0.0, 2.0**-10, 0.4, -2.0)
"""Slopes, say: so large that all but near keys vanish, of the other sign, none, tiny, so that a
dominant key far away does not vanish."""


def _wild(tensor: Tensor, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Return numbers of any size and sign, which differ from batch to batch.

    Along rows or keys whole numbers are few, in no order, so that each is there again and again.
    """
    if tensor.dtype == "fp32":
        return np.resize(np.array(WILD, np.float32), shape)
    if tensor.shape[-1] in ("rows", "keys") and "batch" not in tensor.shape[1:]:
        few = rng.integers(-3, 3, shape)
        few[: len(few) // 2] += 1 << 30
        return few.astype(np.int32)
    return rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32)


RUNS = ((1, 192), (5, 192), (5, 128), (1, 128))
"""Two documents, each with whole blocks of keys of any size, then with whole parts of a tile: one
part sees a block that the other hides between blocks that it sees."""


def _runs(shape: tuple[int, ...]) -> NDArray[Any]:
    """Return documents in runs; in every second batch the other one of both."""
    runs = np.concatenate([np.full(length, number, np.int32) for number, length in RUNS])
    found = np.empty(shape, np.int32)
    found[...] = np.resize(runs, shape[-1])
    if len(shape) > 1:
        found[1::2] = 6 - found[1::2]
    return found


def _rows(case: Case, which: int, packed: bool) -> tuple[int, int]:
    """Return batches and rows of the query (0) or key (1) tensor."""
    lengths = [pair[which] for pair in case.sequences]
    if packed:
        return 1, sum(lengths)
    return case.batch, (case.query_rows, case.key_rows)[which]
