"""Scales of the pages of a cache: random ones, and cases that strain them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.cases import of_sequences
from fa4gen.verify.inputs import draw_scales

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.cases import Case
    from fa4gen.verify.input_kinds import Floats
    from fa4gen.verify.inputs import Inputs

FAR_APART = {"key": (-19.0, 1.0), "value": (-10.0, 10.0)}
"""Powers of two: of keys so that every page has a share of the softmax."""
ZEROS = 0.15
"""The scales of the values that are far apart: those of pages of zeros, as 448 divides their
maximum."""


def page_scale_cases(plan: AttentionPlan) -> Iterator[Case]:
    """Yield scales 2^20 apart, pages that sequences share, and scales of one tensor alone."""
    if not plan.has_page_scales:
        return
    n, page = plan.BN, plan.key_source.page_rows
    lengths = ((2, 2 * n + 5), (2, page - 1), (2, n + page + 1))

    def case(name: str, **more: Any) -> Case:
        return of_sequences(plan, f"pages/{name}", *lengths, heads=(4, 2), **more)

    yield case("far_apart", far_scales=True)
    yield case("far_apart_falling", far_scales=True, data="falling")
    yield case("far_apart_dominant", far_scales=True, data="dominant")
    yield case("shared", shared_pages=True)
    yield case("shared_far_apart", shared_pages=True, far_scales=True, layout="padded")
    yield case("values_alone", descales=("value",))


def with_page_scales(
    plan: AttentionPlan,
    case: Case,
    inputs: Inputs,
    tables: Mapping[str, Any],
    rng: np.random.Generator,
    pages: int,
) -> Inputs:
    """Return the inputs with the scales of a cache of ``pages`` pages, and of fp8 queries.

    Those of pages without a sequence are NaN. ``key_descales`` has one for each key of the
    sequences, for a query's that of the key's sequence.
    """
    used, heads = _used_pages(plan, case, tables), inputs.key.shape[2]
    scales: dict[str, Floats] = {}
    of_keys = {}
    rows = _pages_of_keys(plan, case, tables)
    for name in (name for name in case.descales if name in plan.descaled):
        if name == "query":
            shape = (len(case.sequences), heads)
            scales[name] = draw_scales(name, shape, rng, counting=inputs.counting)
            of_keys[name] = np.repeat(scales[name], [keys for _, keys in case.sequences], axis=0)
            continue
        drawn: Any = draw_scales(name, (pages, heads), rng, counting=inputs.counting)
        if case.far_scales:
            drawn = 2.0 ** rng.uniform(*FAR_APART[name], drawn.shape)
            if name == "value":
                drawn[rng.random(drawn.shape) < ZEROS] = 0
        scales[name] = np.full(drawn.shape, np.nan, np.float32)
        scales[name][used] = drawn[used]
        of_keys[name] = scales[name][rows]
    return replace(inputs, descales=scales, key_descales=of_keys)


def _pages_of_keys(plan: AttentionPlan, case: Case, tables: Mapping[str, Any]) -> Any:
    """Return the page of every key, sequence after sequence."""
    places = [
        plan.key_source.rows(number, 0, tables) // plan.key_source.page_rows
        for number in range(len(case.sequences))
    ]
    return np.concatenate([np.zeros(0, np.int64), *places])


def _used_pages(plan: AttentionPlan, case: Case, tables: Mapping[str, Any]) -> Any:
    return np.unique(_pages_of_keys(plan, case, tables))
