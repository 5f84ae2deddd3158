"""The bench of fp8 attention, as far as it needs no GPU."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import fp8_attention
from fp8_errors_picture import MODEL, errors_of, errors_picture

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def line(keys: int, chip: str, **errors: float) -> dict[str, object]:
    named = {f"promote_every {name}": error for name, error in errors.items()}
    return {"problem": f"{keys} keys, values from N(1, 1)", "chip": chip, "errors": named}


LINES = [
    line(4096, MODEL, never=0.05, **{"16": 0.02, "2": 0.5}),
    line(8192, MODEL, never=0.1, **{"16": 0.02}),
    line(4096, "NVIDIA H200", never=0.06),
    {"problem": "4096 keys, values from N(0, 1)", "chip": MODEL, "errors": {"fa3 fp8": 1.0}},
]


def test_the_picture_has_a_line_for_each_promotion_and_what_was_measured() -> None:
    assert errors_of(LINES, model=True) == {
        "promote_every never": {4096: 0.05, 8192: 0.1},
        "promote_every 16": {4096: 0.02, 8192: 0.02},
    }
    svg = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.fromstring(errors_picture(LINES))
    assert len(picture.findall(f"{svg}polyline")) == 3
    assert len(picture.findall(f"{svg}circle")) == 4
    tips = [one.findtext(f"{svg}title") for one in picture.findall(f"{svg}rect")]
    assert tips == [None, "promote_every never, measured, 4096 keys: 0.06"]
    heights = [float(one.get("cy", "")) for one in picture.findall(f"{svg}circle")]
    assert heights[1] < heights[0] < heights[2] == heights[3]  # larger errors are further up


def test_a_picture_is_drawn_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, picture = tmp_path / "found.jsonl", tmp_path / "found.svg"
    results.write_text("".join(json.dumps(one) + "\n" for one in LINES))
    monkeypatch.setattr("sys.argv", ["fp8_attention.py", "plot", str(picture), str(results)])
    fp8_attention.main()
    assert picture.read_text() == errors_picture(LINES)
