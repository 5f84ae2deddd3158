"""The tables of products, layers of experts, sparse blocks and dependent launches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grouped_parts
import moe_parts
import pytest
import scaled_parts
import short_parts

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, file: Path, *lines: dict[str, Any]) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def cells(text: str) -> list[list[str]]:
    """Return the rows of a table, without its head."""
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()[2:]]


def line(problem: str, us: float, peers: dict[str, float], **details: Any) -> dict[str, Any]:
    return {
        "problem": problem,
        "kernel": "a",
        "date": "2026-11-30",
        "commit": "abc",
        "times_us": [us],
        "peers_us": peers,
        "details": details,
    }


def test_gradients_are_compared_with_the_fastest_tile_that_writes_bf16(tmp_path: Path) -> None:
    tiles = {"a": 10.0, "a float32": 15.0, "a added": 40.0, "b added": 30.0}
    first = line("4x8, 2x4", 10.0, {"torch_bf16": 20.0, "one sum": 5.0}, tiles_us=tiles, tflops=1.6)
    second = line("4x9, 2x4", 10.0, {"torch_bf16": 5.0}, tiles_us=tiles, tflops=2)
    write(tmp_path, grouped_parts.GRADIENTS, first, second)
    assert cells(grouped_parts.gradients(tmp_path)) == [
        ["4x8, 2x4", "a", "10.0", "2", "2.000", "1.500", "3.000"],
        ["4x9, 2x4", "a", "10.0", "2", "0.500", "1.500", "3.000"],
        ["all 2", "geometric mean", "", "", "1.000", "1.500", "3.000"],
    ]


def test_gathered_rows_are_compared_tile_by_tile(tmp_path: Path) -> None:
    many = {"a": 10.0, "b": 8.0, "columns": 9.0, "a, gathered": 11.0, "b, gathered": 12.0}
    few = {"b": 4.0, "c": 5.0, "b, gathered": 5.0, "c, gathered": 4.0}
    write(
        tmp_path,
        grouped_parts.GATHERED,
        line("many", 8.0, {"torch_bf16": 16.0}, tiles_us=many),
        line("few", 4.0, {"torch_bf16": 3.0}, tiles_us=few),
    )
    again = line("few", 4.0, {}, tiles_us={"b": 4.0, "c": 5.0, "c, gathered": 4.2})
    write(tmp_path, grouped_parts.GATHERED_AGAIN, again)
    assert cells(grouped_parts.gathered(tmp_path)) == [
        ["a", "1.100", ""],
        ["b", "1.500", "1.250"],
        ["c", "", "0.800"],
        ["fastest, contiguous rows, us", "8.0", "4.0"],
        ["fastest, gathered rows, us", "11.0", "4.0"],
        ["torch._grouped_mm, contiguous rows, us", "16.0", "3.0"],
        ["fastest to fastest", "1.375", "1.000"],
        ["fastest to fastest, second run", "", "1.050"],
    ]


def test_a_peer_that_did_not_run_has_no_ratio_and_no_mean(tmp_path: Path) -> None:
    peers = {"cublas one scale": 5.0, "without scales": 30.0, "without scales, b": 20.0}
    write(
        tmp_path,
        scaled_parts.DRAWN,
        line("1x2x3", 10.0, peers),
        line("4x5x6", 10.0, {**peers, "cublas": 11.0}),
    )
    assert cells(scaled_parts.products(tmp_path, scaled_parts.DRAWN)) == [
        ["1 x 2 x 3", "a", "10.0", "", "0.500", "2.000"],
        ["4 x 5 x 6", "a", "10.0", "1.100", "0.500", "2.000"],
        ["all 2", "geometric mean", "", "", "0.500", "2.000"],
    ]


def layer(kernel: str, tokens_per_s: float, *, holds: bool = True) -> dict[str, Any]:
    details = {"tokens_per_s": tokens_per_s, "holds": holds}
    return {"problem": "64 tokens", "kernel": kernel, "details": details}


def test_layers_are_compared_with_those_of_the_same_type(tmp_path: Path) -> None:
    speeds = {"fa4gen bf16": 3e6, "grouped_mm bf16": 2e6, "fa4gen fp8": 5e6, "grouped_mm fp8": 4e6}
    write(tmp_path, moe_parts.RESULTS, *(layer(*one) for one in speeds.items()))
    assert cells(moe_parts.layers(tmp_path)) == [
        ["64", "3,000,000", "2,000,000", "1.50", "5,000,000", "4,000,000", "1.25"]
    ]


def test_a_layer_with_a_wrong_output_has_no_speed(tmp_path: Path) -> None:
    write(tmp_path, moe_parts.RESULTS, layer("fa4gen fp8", 1e9, holds=False))
    with pytest.raises(ValueError, match="64 tokens, fa4gen fp8: output not right"):
        moe_parts.layers(tmp_path)


def test_sparse_blocks_have_what_was_measured_and_notes(tmp_path: Path) -> None:
    found = {"ms": 2.0, "tflops": 500.4, "of_dense": 0.7, "of_all": 1.0}
    more = {"flex_attention": 2.5, "making_host_us": 43.2, "note": "made later"}
    write(
        tmp_path,
        short_parts.SPARSE,
        line("64 x 64, density 1.0", 2000.0, {"listing": 12.04}, **found),
        line("64 x 64, density 0.5", 2000.0, {"listing": 11, "making": 6.5}, **found, **more),
    )
    text, note = short_parts.sparse(tmp_path).split("\n\n")
    shared = ["2.000", "500", "0.700", "1.000"]
    assert cells(text) == [
        ["64 x 64, 1.0", *shared, "", "12.0", "", ""],
        ["64 x 64, 0.5", *shared, "2.50", "11.0", "6.5", "43"],
    ]
    assert note == "Run on 2026-11-30, commit abc. Made later."


def test_runs_of_dependent_launches_have_rings_and_what_a_pair_saves(tmp_path: Path) -> None:
    runs = [
        {**line("8 layers", 760.0, {"apart": 775.46}, **more), "commit": commit}
        for commit, more in (
            ("abc", {"saved_us_a_pair": 0.406}),
            ("", {"saved_us_a_pair": -0.9, "short_rings": True, "note": "why"}),
        )
    ]
    write(tmp_path, short_parts.DEPENDENT, *runs)
    assert cells(short_parts.dependent(tmp_path)) == [
        ["2026-11-30, commit abc", "whole", "775.5", "760.0", "+0.41", ""],
        ["2026-11-30", "short", "775.5", "760.0", "-0.90", "why"],
    ]


def test_a_step_has_a_column_for_each_run(tmp_path: Path) -> None:
    def variant(problem: str, kernel: str, *, holds: bool = True) -> dict[str, Any]:
        found = {"tokens_per_s": 2000.4, "times_pytorch": 1.25, "holds": holds}
        return {**line(problem, 1.0, {}, **found), "kernel": kernel}

    first, second = variant("1, eager", "a"), variant("1, compiled", "b")
    write(tmp_path, short_parts.CHAIN, first, second)
    text = short_parts.steps(tmp_path)
    assert text.startswith("| variant | 1, eager | 1, compiled |")
    text = text.partition("\n\n")[0]
    assert cells(text) == [["`a`", "2,000, 1.250", ""], ["`b`", "", "2,000, 1.250"]]
    write(tmp_path, short_parts.CHAIN, first, variant("1, compiled", "b", holds=False))
    with pytest.raises(ValueError, match="1, compiled, b: logits not right"):
        short_parts.steps(tmp_path)
