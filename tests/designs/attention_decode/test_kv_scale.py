"""Decode kernels whose keys and values have a scale for each page, not for each sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.attention_model import AttentionPlan

    PlanOf = Callable[..., AttentionPlan]

FP8 = {"pack_heads": True, "kv_dtype": "fp8_e4m3"}
PAGED = {**FP8, "keys": "paged", "page_size": 32}


@pytest.mark.parametrize(
    ("depth", "page_size", "pages"),
    [(64, 16, 4), (64, 32, 2), (64, 64, 1), (96, 16, 1), (128, 16, 2), (256, 16, 2), (128, 256, 1)],
)
def test_a_warp_has_the_scale_of_each_page_of_its_keys(
    plan_of: PlanOf, depth: int, page_size: int, pages: int
) -> None:
    plan = plan_of(depth=depth, **{**PAGED, "page_size": page_size}, kv_scale="page")
    assert plan.has_page_scales
    assert plan.part_pages == pages
    assert plan.part_keys % pages == 0
    assert plan.part_keys // pages % 16 == 0, "16 keys of a product have one scale"
    assert any("a scale for each page and key head" in line for line in plan.summary)


def test_what_has_a_scale_is_said_by_parameters_and_choices(plan_of: PlanOf) -> None:
    for kv_scale, whose in (("auto", "sequences"), ("head", "sequences"), ("page", "pages")):
        plan = plan_of(**PAGED, kv_scale=kv_scale)
        assert plan.kv_scale == ("head" if kv_scale == "auto" else kv_scale)
        [meaning] = [row.meaning for row in plan.parameters if row.name == "value_descale"]
        assert f"({whose}, key heads)" in meaning
        [choice] = [row for row in plan.choices if row.key == "kv_scale"]
        assert choice.value == plan.kv_scale
    assert not any(row.key == "kv_scale" for row in plan_of(pack_heads=True).choices)


@pytest.mark.parametrize(
    ("keys", "message", "fixes"),
    [
        (
            {**FP8, "kv_scale": "page"},
            "kv_scale: page is for keys: paged, but keys are dense, in no pages",
            ("Set keys: paged and page_size: 64; or kv_scale: head",),
        ),
        (
            {**FP8, "key_lengths": True, "kv_scale": "page"},
            "kv_scale: page is for keys: paged, but keys are dense, in no pages",
            ("kv_scale: head",),
        ),
        (
            {"pack_heads": True, "kv_scale": "page"},
            "kv_scale: page is for kv_dtype: fp8_e4m3, but keys and values are bf16, without",
            ("kv_scale: auto",),
        ),
        (
            {"pack_heads": True, "kv_scale": "head"},
            "kv_scale: head is for kv_dtype: fp8_e4m3, but keys and values are bf16, without",
            ("kv_dtype: fp8_e4m3", "kv_scale: auto"),
        ),
        (
            {"depth": 576, "value_depth": 512, "pack_heads": True, "kv_scale": "page"},
            "depth: 576 has no kv_scale, got page",
            ("kv_scale: auto",),
        ),
    ],
)
def test_scales_of_what_has_none_are_refused(
    plan_of: PlanOf, keys: dict[str, object], message: str, fixes: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(**keys)
    [problem] = caught.value.problems
    assert message in problem.message
    for fix in fixes:
        assert fix in str(problem)


@pytest.mark.parametrize("kv_scale", ["head", "page"])
def test_fixes_of_other_faults_take_the_scales_along(plan_of: PlanOf, kv_scale: str) -> None:
    score = [{"score": "score + 1"}] if kv_scale == "page" else []
    for wrong in ({"packed_rows": 64}, {"batching": "ragged"}, *score):
        with pytest.raises(ConfigError) as caught:
            plan_of(**PAGED, kv_scale=kv_scale, **wrong)
        [problem] = caught.value.problems
        assert problem.remedy, wrong
