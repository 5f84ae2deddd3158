"""The bench of fp8 attention, as far as it needs no GPU."""

from __future__ import annotations

import argparse

import fp8_attention


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"drawn": 0, "seed": 0, "depth": [], **given})


def test_the_table_has_every_depth_with_both_masks() -> None:
    shapes = list(fp8_attention.shapes_of(options()))
    assert {(shape.depth, shape.causal) for shape in shapes} == {
        (depth, causal) for depth in (64, 128, 256) for causal in (False, True)
    }
    [first, *_] = fp8_attention.shapes_of(options(depth=[128]))
    assert first.words == "1x2048, heads 64/8, depth 128, dense"
    assert first.operations == 4 * 64 * 2048**2 * 128


def test_drawn_shapes_are_those_of_the_seed() -> None:
    drawn = list(fp8_attention.shapes_of(options(drawn=30, seed=1)))
    assert drawn == list(fp8_attention.shapes_of(options(drawn=30, seed=1)))
    assert len(drawn) == 30
    assert all(shape.heads % shape.key_heads == 0 for shape in drawn)


def test_promotion_bounds_the_error_of_values_with_a_mean() -> None:
    none, mean = fp8_attention.model_errors(8192)
    assert none["problem"] == "8192 keys, values from N(0, 1)"
    assert none["errors"]["promote_every never"] < 0.04
    errors = mean["errors"]
    assert errors["promote_every never"] > 0.08
    assert errors["promote_every 8"] < 0.02
    assert errors["promote_every 1"] < errors["promote_every 4"] < errors["promote_every 16"]
