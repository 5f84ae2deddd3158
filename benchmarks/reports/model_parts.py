"""A table of how well the cost model agrees with measured products, for docs/how-it-works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fit_gemm_model as fit
from tables import table

from fa4gen.tune.model.agreement import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_fit import Measured

HEADER = (
    "kernels that the model may choose",
    "half within",
    "90 % within",
    "order right, of pairs that differ by more than 5 %",
    "first choice to the best measured: mean, worst",
)
WORDS = {
    "no residual": "no residual",
    "residual": "residual",
    "earlier runs": "earlier runs",
    "drawn": "random shapes, five runs: swapped operands, turns, clusters of four",
    "fp8": "fp8, 11 products",
}


def agreement_table() -> str:
    """Return a row for each kind of records, one for all, and those of what no fit has seen."""
    records = fit.read_records()
    rows = [
        _row(words, [one for one in records if one.kind == kind]) for kind, words in WORDS.items()
    ]
    rows.append(_row("**all of these**", records))
    for path, words in (
        (fit.TUNED, "42 products of layers that were tuned, not in the fit"),
        (fit.TUNED_RESIDUAL, "the same with a residual, not in the fit"),
        (fit.UNSEEN, "17 products, 12 of them random, measured after the fit"),
    ):
        rows.append(_row(words, fit.read_tuned(path)))
    return table(HEADER, rows)


def _row(words: str, records: Sequence[Measured]) -> tuple[str, ...]:
    found = compare(fit.MODEL.figures(fit.suited(records)))
    return (
        words,
        f"{found.median_error:.1%}".replace("%", " %"),
        f"{found.error_of_90:.1%}".replace("%", " %"),
        f"{found.order:.1%} of {found.pairs}".replace("%", " %"),
        f"{found.mean_choice:.3f}, {min(found.choices):.3f}",
    )
