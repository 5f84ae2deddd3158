"""Kinds of numbers that count keys: a key dropped, doubled or taken from elsewhere is loud.

Logits are whole numbers and the softmax scale is ln 2, so that every weight of a row is a power of
two by any of its maxima: no type rounds it, and sums of weights and of values are exact. Values are
whole numbers and not negative, so that nothing cancels. The output is then the exact one, rounded
once. Queries, keys and values are drawn by row, key, head and batch: a neighbour's have other
weights and other values.

All of them are whole numbers of up to 16, which fp8 has, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.verify.draft import Draft

LN2 = float(np.float32(math.log(2)))
"""The softmax scale."""
SCALES = {"query": (1.0, 2.0), "key": (1.0, 2.0), "value": (0.5, 1.0, 2.0)}
"""The scales of fp8: logits stay whole."""
LOWEST_LOGIT = 3
MOST = 15
"""The largest number of a value."""
VALUE_SHARE = 1 / 8
"""The share of a value's columns that are not zero: enough keys of a block add to a column for a
sum with more bits than bf16."""
LATENT_MOST = 3
LATENT_QUERY_SHARE = 1 / 64
"""The share of the columns that a query multiplies, by -1, among those that are values, too."""
RAMP_STEPS = 8
RAMP_QUERY = {"bf16": 8, "fp16": 2, "fp8_e4m3": 2}
"""Times RAMP_STEPS: powers of two from the first key to the last, that the type has room for."""
RAISED = "counting_raised"
RAISED_QUERY, RAISED_KEY = 1.625, 7.0
"""Their product, 11.375 powers of two: bf16 would round a factor of 2^-11.375 by 0.2 %."""
LEAST_RISE = RAISED_QUERY * RAISED_KEY - LOWEST_LOGIT
"""Powers of two by which the largest of some raised logits is above all others at least."""


def _counting(draft: Draft) -> None:
    """Whole logits and values, so that outputs are exact: each key counts."""
    rng, most = draft.rng, MOST
    draft.scale = LN2
    draft.query[:] = rng.integers(0, 2, draft.query.shape)
    first = 0
    if draft.values_in_keys:
        most, first = LATENT_MOST, draft.value.shape[3]
        chosen = rng.random(draft.query[..., :first].shape) < LATENT_QUERY_SHARE
        draft.query[..., :first] = np.where(chosen, -1, 0)
    draft.value[:] = rng.integers(1, most + 1, draft.value.shape)
    draft.value *= rng.random(draft.value.shape, np.float32) < VALUE_SHARE
    draft.key[:] = 0
    if draft.values_in_keys:
        draft.key[..., :first] = draft.value
    # The last column is left for a ramp.
    column = rng.integers(first, draft.depth - 1, (*draft.key.shape[:3], 1))
    logit = rng.integers(-LOWEST_LOGIT, 0, column.shape).astype(np.float32)
    np.put_along_axis(draft.key, column, logit, axis=3)


def _counting_rising(draft: Draft) -> None:
    """Whole logits that rise or fall by row, too: maxima are powers of two apart."""
    _counting(draft)
    row, head = (np.arange(extent) for extent in draft.query.shape[1:3])
    signs = np.where((row[:, None] + head) % 3 == 0, 1, -1)
    draft.query[..., -1] = signs * RAMP_QUERY[draft.dtype]
    draft.key[..., -1] = np.rint(draft.key_positions() * RAMP_STEPS)


def _counting_raised(draft: Draft) -> None:
    """Whole logits, those of some keys larger by no power of two: older sums have such a factor.

    By the largest logit of either group its weights are still powers of two. The raised keys have
    most of the weight, and no values in half of the columns: there older sums are all there is.
    """
    _counting(draft)
    raised = slice(*draft.raised)
    draft.query[..., -1] = RAISED_QUERY
    draft.key[:, raised, :, -1] = RAISED_KEY
    draft.value[:, raised, :, draft.value.shape[3] // 2 :] = 0
    if draft.values_in_keys:
        draft.key[..., : draft.value.shape[3]] = draft.value


COUNTING_KINDS: dict[str, Callable[[Draft], None]] = {
    "counting": _counting,
    "counting_rising": _counting_rising,
    RAISED: _counting_raised,
}
