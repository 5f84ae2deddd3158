"""Kinds of numbers for attention: each strains one part of the kernel.

Kinds that count keys make one that is dropped, doubled or taken from elsewhere loud. Logits are
whole numbers and the softmax scale is ln 2, so that every weight of a row is a power of two by any
of its maxima: no type rounds it, and sums of weights and of values are exact. Values are whole
numbers and not negative, so that nothing cancels. The output is then the exact one, rounded once.
Queries, keys and values are drawn by row, key, head and batch: a neighbour's have other weights and
other values. All are whole numbers of up to 16, which fp8 has, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Floats = NDArray[np.float32]
LN2 = float(np.float32(math.log(2)))
"""The softmax scale of kinds that count."""
SCALES = {"query": (1.0, 2.0), "key": (1.0, 2.0), "value": (0.5, 1.0, 2.0)}
"""Their scales of fp8: logits stay whole."""
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


@dataclass
class Draft:
    """N(0, 1) numbers, before a kind has changed them."""

    rng: np.random.Generator
    dtype: str
    """The type of the query."""
    kv_dtype: str
    query: Floats
    key: Floats
    value: Floats
    scale: float
    values_in_keys: bool = False
    """The first columns of the keys are the values."""
    raised: tuple[int, int] = (0, 0)
    """Keys, from the first to before the second, with logits that a kind may raise above the
    others."""

    @property
    def depth(self) -> int:
        """Head dimension."""
        return int(self.query.shape[3])

    def key_positions(self) -> Floats:
        """0 at the first key to 1 at the last, shaped to be added along the key's rows."""
        return np.linspace(0, 1, self.key.shape[1], dtype=np.float32)[None, :, None]

    def scale_logits(self, powers: Mapping[str, int]) -> None:
        """Multiply queries and keys by powers of two, and divide the scale by both."""
        of_query, of_keys = powers[self.dtype], powers[self.kv_dtype]
        self.query *= 2.0**of_query
        self.key *= 2.0**of_keys
        self.scale *= 2.0 ** -(of_query + of_keys)

    def clip(self) -> None:
        """Keep inside the type's range, rounding included."""
        types = (self.dtype, self.kv_dtype, self.kv_dtype)
        for array, dtype in zip((self.query, self.key, self.value), types, strict=True):
            limit = np.float32(LARGEST[dtype] * (1 - 2.0**-6))
            np.clip(array, -limit, limit, out=array)


def _normal(draft: Draft) -> None:
    """N(0, 1) throughout."""


def _large_logits(draft: Draft) -> None:
    """Logits of standard deviation 30: a softmax of one or two keys, large changes of maxima."""
    draft.query *= 5.5
    draft.key *= 5.5


def _ramp(draft: Draft, logits: float, sign: float | Floats = 1.0) -> None:
    """Add to each logit a ramp that goes from 0 at the first key to ``logits`` at the last."""
    # Small keys for large logits: those of fp8 go to 448.
    own = 8 if draft.kv_dtype == draft.dtype else 512
    draft.query[..., 0] = own * sign
    draft.key[..., 0] = draft.key_positions() * np.float32(logits / (own * draft.scale))


def _far_apart(draft: Draft) -> None:
    """Logits that grow by 10,000 from the first key to the last: maxima of parts are far apart."""
    _ramp(draft, 1e4)


def _rising(draft: Draft) -> None:
    """Logits that grow by 80 from the first key to the last."""
    _ramp(draft, 80.0)


def _falling(draft: Draft) -> None:
    """Logits that fall by 80: a kernel that walks from the last key rescales at every block."""
    _ramp(draft, -80.0)


def _falling_slowly(draft: Draft) -> None:
    """Logits that fall by 12: maxima that grow by less than the threshold of lazy rescaling."""
    _ramp(draft, -12.0)


def _rising_and_falling(draft: Draft) -> None:
    """Neighbouring rows disagree on which way the maxima go."""
    signs = np.where(np.arange(draft.query.shape[1]) % 3 == 0, 1.0, -1.0)
    _ramp(draft, 80.0, signs.astype(np.float32)[None, :, None])


def _dominate(draft: Draft, position: int, logit: float) -> None:
    """Make one key's logit larger by ``logit`` for all queries."""
    if not draft.key.size:
        return
    direction = draft.rng.choice(np.array([-1, 1], dtype=np.float32), size=draft.depth)
    draft.query += 4 * direction
    draft.key[:, position] = direction * np.float32(logit / (4 * draft.depth * draft.scale))


def _dominant(draft: Draft) -> None:
    """One key anywhere has most of the weight, the others still count."""
    _dominate(draft, int(draft.rng.integers(max(1, draft.key.shape[1]))), 24.0)


def _dominant_first(draft: Draft) -> None:
    """Give the first key all of the weight."""
    _dominate(draft, 0, 200.0)


def _dominant_last(draft: Draft) -> None:
    """Give the last key all of the weight."""
    _dominate(draft, -1, 200.0)


def _offset(draft: Draft, logits: float) -> None:
    draft.query[..., 0] = 8
    draft.key[..., 0] = logits / (8 * draft.scale)


def _peaks(draft: Draft) -> None:
    """One key has all of a row's weight, for each row another: each counts for the maximum."""
    _put_peaks(draft, draft.depth, 300.0 / draft.scale)


def _put_peaks(draft: Draft, columns: int, product: float) -> None:
    """Let each row's product with one key be ``product``, in one of so many columns; others 0."""
    draft.query[:], draft.key[:] = 0, 0
    rows, keys = draft.query.shape[1], draft.key.shape[1]
    if not keys:
        return
    own = 8 if draft.kv_dtype == draft.dtype else 512
    of_keys = draft.rng.permutation(np.arange(keys) % columns)
    peak = of_keys[draft.rng.integers(keys, size=rows)]
    draft.query[:, np.arange(rows), :, peak] = own
    draft.key[:, np.arange(keys), :, of_keys] = product / own


_PEAK = 3584.0
"""The product of a row with its peak; each type has its factors."""


def _high_peaks(draft: Draft) -> None:
    """Peaks above large logits, each row's own: a rounded maximum overflows or leaves nothing.

    Products begin at 2^20, or at 2^16 in fp8; rows lie evenly between two numbers of bf16 there, so
    that rounding moves most of them by more than exponentials have room for.
    """
    _put_peaks(draft, draft.depth - 2, _PEAK)
    narrow = draft.dtype == "fp8_e4m3"
    draft.query[..., -2] = 2.0 ** (8 if narrow else 12)
    draft.key[..., -2] = 2.0**8
    steps = draft.rng.integers(16, size=draft.query.shape[:3])
    draft.query[..., -1] = steps if narrow else 32 * steps
    draft.key[..., -1] = 32 if narrow else 16


EQUAL_HIGH = "equal_high"
EQUAL_POWERS = {"bf16": 31, "fp16": 28, "fp8_e4m3": 27}
"""By the type of keys, log2 of the bound on the exponents, which are logits in powers of two. Half
a unit in the last place is 64 below 2^31, which float32 and bf16 have room for, and 8 below 2^28,
for weights in fp16; scales of fp8 keys are up to 2."""
EQUAL_COLUMNS = 32
_EQUAL_KEY = {"fp8_e4m3": 8, "fp16": 15, "bf16": 60}
_EQUAL_QUERY = {"fp8_e4m3": 4, "fp16": 12, "bf16": 60}
"""The largest powers of two that the types have room for, of queries times 15."""


def _equal_high(draft: Draft) -> None:
    """Equal logits of a row, near the largest for which kernels are right: a rounded maximum fails.

    Rows have logits of their own, of either sign. In fp8 the types' range bounds them.
    """
    unit = EQUAL_COLUMNS * draft.scale * math.log2(math.e)
    power = math.floor(EQUAL_POWERS[draft.kv_dtype] - math.log2(15 * unit))
    of_keys = min(power // 2, _EQUAL_KEY[draft.kv_dtype])
    of_query = min(power - of_keys, _EQUAL_QUERY[draft.dtype])
    drawn = draft.rng.integers(8, 16, draft.query.shape[:3]) * 2.0**of_query
    signs = draft.rng.choice([-1, 1], drawn.shape)
    draft.query[:] = 0
    draft.query[..., -EQUAL_COLUMNS:] = (signs * drawn)[..., None]
    draft.key[..., -EQUAL_COLUMNS:] = 2.0**of_keys


def _all_logits_high(draft: Draft) -> None:
    """All logits near 200: exponentials overflow unless the maximum is subtracted."""
    _offset(draft, 200.0)


def _all_logits_low(draft: Draft) -> None:
    """All logits near -200: they vanish beside a maximum that begins at zero, or a stray key."""
    _offset(draft, -200.0)


def _uniform(draft: Draft) -> None:
    """Zero queries: the output is the mean of the values."""
    draft.query[:] = 0


def _constant(draft: Draft) -> None:
    """One number everywhere: the output is known, and exact."""
    draft.query[:] = 0.5
    draft.key[:] = 0.25
    draft.value[:] = 1.5


_HUGE = {"fp8_e4m3": 6, "fp16": 12, "bf16": 40}
_TINY = {"fp8_e4m3": -7, "fp16": -14, "bf16": -50}
"""Powers of two, of queries and keys by their types."""


def _huge(draft: Draft) -> None:
    """Values near the top of what the kernel can hold.

    fp16: up to the largest number of the type, 65504, whose sums fit float32. bf16 has float32's
    range, so there the sums are the limit: the output before it is divided is a sum of
    probabilities of up to 2^10 (the maximum may be too small by rescale_threshold, at most 10)
    times values; with values of 2^100 it stays below 2^128 for up to 2^17 keys. Scores of 2^80
    leave room, too. fp8: up to its largest number, 448.
    """
    draft.scale_logits(_HUGE)
    largest = {"fp8_e4m3": 448, "fp16": 65504}.get(draft.kv_dtype)
    if largest is None:
        draft.value *= 2.0**100
    else:
        draft.value[:] = draft.rng.uniform(-largest, largest, draft.value.shape)


def _tiny(draft: Draft) -> None:
    """Values near zero: fp16 subnormals in and out; for bf16 as small as float32 sums stay exact.

    bf16 subnormals are subnormal in float32, too, which tensor cores and exp2 may flush to zero.
    fp8: subnormals in, 2^-9 being the least.
    """
    draft.scale_logits(_TINY)
    draft.value *= 2.0 ** {"fp8_e4m3": -7, "fp16": -14}.get(draft.kv_dtype, -90)


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


def _with_mean(draft: Draft) -> None:
    """Values from N(1, 1): sums that keep few bits lose what is small beside them."""
    draft.value += 1


def _outlier_columns(draft: Draft) -> None:
    """One column of query, key and value is 16 times as large as the others."""
    column = int(draft.rng.integers(draft.depth))
    draft.query[..., column] *= 16
    draft.key[..., column] *= 16
    draft.value[..., column % draft.value.shape[-1]] *= 16


CUT_KINDS: dict[str, Callable[[Draft], None]] = {
    "with_mean": _with_mean,
    "outlier_columns": _outlier_columns,
}
"""Kinds for kernels whose sums keep few bits."""
COUNTING_KINDS: dict[str, Callable[[Draft], None]] = {
    "counting": _counting,
    "counting_rising": _counting_rising,
    RAISED: _counting_raised,
}


KINDS: dict[str, Callable[[Draft], None]] = {
    "normal": _normal,
    "large_logits": _large_logits,
    "rising": _rising,
    "far_apart": _far_apart,
    "falling": _falling,
    "falling_slowly": _falling_slowly,
    "rising_and_falling": _rising_and_falling,
    "dominant": _dominant,
    "dominant_first": _dominant_first,
    "dominant_last": _dominant_last,
    "peaks": _peaks,
    "high_peaks": _high_peaks,
    EQUAL_HIGH: _equal_high,
    "all_logits_high": _all_logits_high,
    "all_logits_low": _all_logits_low,
    "uniform": _uniform,
    "constant": _constant,
    "huge": _huge,
    "tiny": _tiny,
    **COUNTING_KINDS,
    **CUT_KINDS,
}


def kind_meaning(name: str) -> str:
    """Return the first line of a kind's description."""
    return (KINDS[name].__doc__ or "").strip().splitlines()[0]
