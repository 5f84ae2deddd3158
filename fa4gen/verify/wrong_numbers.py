"""Words for results of attention that are wrong: which error is too large, and where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.buffers import words
from fa4gen.verify.errors import Between, element_shares
from fa4gen.verify.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.verify.reference import AttentionResult
    from fa4gen.verify.tolerance import Errors

OUT_AXES = ("batch", "row", "head", "column")


def wrong_numbers(
    got: AttentionResult, exact: AttentionResult, errors: Errors, bounds: Errors, xp: Any
) -> Iterator[Failure]:
    """Yield the errors in a kernel's results that are above their bounds, with their places."""
    above = [name for name, error in errors if not error <= getattr(bounds, name)]
    if "share" in above:
        yield Failure("numbers", outside("out", OUT_AXES, got.out, exact, xp))
    if "max_logit" in above:
        yield Failure(
            "numbers", outside("max_logits", ("head",), got.max_logits, exact.max_logits, xp)
        )
    out_above = [name for name in above if name not in ("lse", *errors.INTERVALS)]
    if out_above:
        index = _worst_element(got.out, exact.out, row_first=out_above == ["row"], xp=xp)
        yield Failure(
            "numbers", _comparison("out", got.out, exact.out, index, out_above, errors, bounds)
        )
    if "lse" in above:
        index = _worst_element(got.lse, exact.lse, row_first=False, xp=xp)
        yield Failure(
            "numbers", _comparison("lse", got.lse, exact.lse, index, ["lse"], errors, bounds)
        )


def outside(name: str, axes: tuple[str, ...], got: Any, exact: Between, xp: Any) -> str:
    """Name the element farthest outside of its interval, and how many are."""
    beyond = element_shares(got, exact, xp) > 1
    size = xp.abs(exact.exact)
    with np.errstate(over="ignore", invalid="ignore"):  # a maximum of nothing is -inf
        far = xp.abs(got - exact.exact) / xp.where(size > 0, size, 1e-300)
    far = xp.where(beyond, xp.where(xp.isnan(far), xp.inf, far), 0.0)
    index = tuple(int(i) for i in np.unravel_index(int(far.argmax()), far.shape))
    expected, found = float(exact.exact[index]), float(got[index])
    low, high = float(exact.low[index]), float(exact.high[index])
    place = words(name, axes, index)
    off = ""
    if expected and np.isfinite(expected):
        room = max(high - expected, expected - low) / abs(expected)
        off = f" ({100 * abs(found / expected - 1):.3g} % off, {100 * room:.2g} % is rounding)"
    count = f"{int(beyond.sum())} of {beyond.size} elements"
    return (
        f"{count} are outside of their rounding bounds; "
        f"{place}: expected {expected:.6g}, from {low:.6g} to {high:.6g}, got {found:.6g}{off}"
    )


def _comparison(
    name: str,
    got: Any,
    exact: Any,
    index: tuple[int, ...],
    above: list[str],
    errors: Errors,
    bounds: Errors,
) -> str:
    limits = ", ".join(
        f"{_MEANING[error]} {getattr(errors, error):.3g}, at most {getattr(bounds, error):.3g}"
        for error in above
    )
    axes = ("batch", "head", "row") if name == "lse" else OUT_AXES
    place = words(name, axes, index)
    expected, found = float(exact[index]), float(got[index])
    return f"{limits}; {place}: expected {expected:.6g}, got {found:.6g}"


_MEANING = {
    "frobenius": "relative Frobenius error",
    "row": "relative error of the worst row",
    "element": "largest error",
    "lse": "largest error of the log-sum-exp",
}


def _worst_element(got: Any, exact: Any, *, row_first: bool, xp: Any) -> tuple[int, ...]:
    """Find the largest distance; with ``row_first``, in the row of largest relative error."""
    # Where both are -inf, or got is NaN, the difference is NaN: decide these first.
    same = (got == exact) | (xp.isneginf(exact) & xp.isneginf(got))
    distance = xp.abs(xp.where(same, 0.0, got.astype(xp.float64) - xp.where(same, 0.0, exact)))
    distance = xp.where(xp.isnan(distance), xp.inf, distance)
    if row_first:
        squares = (exact**2).sum(axis=3)
        ratio = (distance**2).sum(axis=3) / xp.where(squares > 0, squares, 1e-300)
        b, s, h = np.unravel_index(int(ratio.argmax()), ratio.shape)
        return int(b), int(s), int(h), int(distance[b, s, h].argmax())
    return tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))
