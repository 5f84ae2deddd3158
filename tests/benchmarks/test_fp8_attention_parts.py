"""The tables of fp8 attention, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fp8_attention_parts as parts
import measured
import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("fp8", "fp8, never promoted", "fp8, contiguous keys", "cudnn fp8", "fa3 fp8", "bf16")


def line(problem: str, *times: float) -> dict[str, Any]:
    taken = dict(zip(NAMES, times, strict=True))
    row = {"problem": problem, "times_us": taken, "tflops": dict.fromkeys(NAMES, 500.0)}
    (found,) = measured.lines_of([row], chip="NVIDIA H200", date="2026-11-30", commit="abc")
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with two problems of each depth and mask, and two drawn ones."""
    lines = [
        line(f"1x{rows}, heads 8/1, depth {depth}, {mask}", 10.0, 9.0, 20.0, cudnn, 20.0, 15.0)
        for depth in parts.DEPTHS
        for mask in parts.MASKS
        for rows, cudnn in ((1024, 10.0), (2048, 40.0))
    ]
    (tmp_path / parts.FOLDER).mkdir(parents=True)
    (tmp_path / parts.RESULTS).write_text(measured.text_of(lines))
    (tmp_path / parts.DRAWN).write_text(measured.text_of([lines[1], lines[0]]))
    return tmp_path


def cells(text: str) -> list[list[str]]:
    return [[one.strip() for one in row.strip("|").split("|")] for row in text.splitlines()]


def test_the_summary_has_geometric_means_and_the_least(root: Path) -> None:
    _, _, default, keys, *rest = cells(parts.summary(root))
    assert default == ["128", "dense", "default", "2.000 (1.000)", "2.000 (2.000)", "1.500 (1.500)"]
    assert keys[2:5] == ["`value_major: keys`", "1.000 (0.500)", "1.000 (1.000)"]
    assert len(rest) == 2 * len(parts.DEPTHS) * len(parts.MASKS) - 2


def test_a_depth_has_its_problems_and_means_by_mask(root: Path) -> None:
    _, _, first, *rows = cells(parts.speed(root, 64))
    assert first == ["1x1024, heads 8/1, dense", *["500"] * 6, "1.000", "2.000", "1.500"]
    assert [row[0] for row in rows[-4:]] == [
        "dense, geometric mean",
        "dense, least",
        "causal, geometric mean",
        "causal, least",
    ]
    assert [row[-3] for row in rows[-4:]] == ["2.000", "1.000", "2.000", "1.000"]


def test_drawn_problems_are_in_order_of_rows(root: Path) -> None:
    rows = cells(parts.drawn(root))[2:]
    assert [row[0] for row in rows[:2]] == ["1x1024, heads 8/1, dense", "1x2048, heads 8/1, dense"]
    assert [row[2] for row in rows[2:]] == ["2.000", "1.000", "4.000", "4.000"]
    assert rows[4][0] == "1 of 2048 rows and more, geometric mean"


def test_a_row_that_times_kernels_by_name_keeps_all_of_them() -> None:
    found = line("1x2048, heads 64/8, depth 128, dense", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert (found["kernel"], found["times_us"]) == ("fp8", [1.0])
    assert parts.times(found) == found["details"]["times_us"]


def test_all_measured_kernels_and_problems_are_in_the_tables() -> None:
    lines = measured.read_lines(ROOT / parts.RESULTS)
    tables = "".join(parts.speed(ROOT, depth) for depth in parts.DEPTHS)
    assert sum(f"{row['problem'].split(', depth')[0]}, " in tables for row in lines) == len(lines)
    assert all(parts.times(row).keys() == set(NAMES) for row in lines)
    for row in measured.read_lines(ROOT / parts.VARIANTS):
        assert parts.times(row).keys() <= parts.VARIANT_NAMES.keys()
    assert len(cells(parts.errors(ROOT, 1))) - 2 == 6


def test_the_picture_has_squares_of_all_promotions_and_both_libraries() -> None:
    (picture,) = parts.pictures(ROOT).values()
    svg = "{http://www.w3.org/2000/svg}"
    tips = [
        one.findtext(f"{svg}title") or ""
        for one in ElementTree.fromstring(picture).iter(f"{svg}rect")
    ]
    promotions = [f"promote_every {every}" for every in ("never", 64, 16, 4, 1)]
    for name in ("cudnn fp8", "fa3 fp8", *promotions):
        assert sum(tip.startswith(f"{name}, measured") for tip in tips) == 6, name
