"""The picture of a run: lines, markers and words follow from the JSON document."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import measured
import pytest

from fa4gen.bench.plot import check_plot, draw_plot, picture_of
from fa4gen.bench.plot_svg import Line, Panel, Picture, Point, colours_of, scale_of, spread, svg
from fa4gen.bench.report import results_data
from fa4gen.bench.run import BenchOptions
from fa4gen.errors import ConfigError

if TYPE_CHECKING:
    from fa4gen.bench.results import ConfigResult

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
SVG = "{http://www.w3.org/2000/svg}"


def document(*results: ConfigResult) -> dict[str, Any]:
    return results_data(
        results,
        BenchOptions((1024, 2048, 4096), family="attention"),
        date="2026-11-21T08:00:00+00:00",
        gpu={"name": "NVIDIA H200"},
        versions={},
    )


def drawn(data: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(picture_of(data, Path("p.svg")))


def texts(picture: ElementTree.Element) -> list[str | None]:
    return [element.text for element in picture.iter(f"{SVG}text")]


def tips(picture: ElementTree.Element) -> list[str | None]:
    return [element.text for element in picture.iter(f"{SVG}title")][1:]


def heights(picture: ElementTree.Element) -> list[list[float]]:
    """How far above the bottom of the picture each line's points are."""
    return [
        [-float(point.partition(",")[2]) for point in line.attrib["points"].split()]
        for line in picture.iter(f"{SVG}polyline")
    ]


def test_points_are_ratios_to_the_fastest_peer(make_result) -> None:
    picture = drawn(document(make_result()))
    assert tips(picture) == [
        "depth 128, 1k: 0.80 of cuDNN: 200 to 250 TFLOP/s",
        "depth 128, 2k: 0.80 of FlashAttention-3: 200 to 250 TFLOP/s",
        "depth 128, 4k: 2.00 of FlashAttention-3: 400 to 200 TFLOP/s",
    ]
    ((first, second, third),) = heights(picture)
    assert first == second < third


def test_words(make_result, make_size) -> None:
    slow = make_result(sizes=(make_size(1024, 0.5, fa3=0.6, cudnn=0.9, fa2=1.0),))
    words = texts(drawn(document(slow)))
    assert words[:5] == [
        "Attention forward: speed relative to the fastest peer",
        "NVIDIA H200, 2026-11-21. Batch x rows = 16384, heads x depth = 2048, random data",
        "Fastest peer:",
        "FlashAttention-3",
        "(slower everywhere: cuDNN, FlashAttention-2)",
    ]
    assert "bf16, causal" in words
    assert "1.00x" in words


def test_masks_have_a_panel_and_depths_a_line_each(make_result) -> None:
    facts = make_result().facts
    results = [
        make_result("a"),
        make_result("b", facts={**facts, "depth": 64}),
        make_result("c", facts={**facts, "mask": "none"}),
        make_result("not_measured", sizes=()),
    ]
    picture = drawn(document(*results))
    panels = [[e.text for e in panel.iter(f"{SVG}text")] for panel in picture.iter(f"{SVG}g")]
    assert [
        [word for word in panel if str(word).startswith(("bf16", "depth"))] for panel in panels
    ] == [["bf16, causal", "depth 128", "depth 64"], ["bf16, dense", "depth 128"]]


def test_two_lines_of_one_depth_have_the_names_of_their_configs(make_result) -> None:
    words = texts(drawn(document(make_result("one"), make_result("two"))))
    assert "depth 128" not in words
    assert {"one", "two"} <= set(words)


def test_without_peers_speeds_are_drawn(make_result, make_size) -> None:
    alone = make_result(sizes=(make_size(1024, 0.5), make_size(2048, 0.25)))
    picture = drawn(document(alone))
    assert "Attention forward: TFLOP/s" in texts(picture)
    assert "Fastest peer:" not in texts(picture)
    assert tips(picture) == ["depth 128, 1k: 200 TFLOP/s", "depth 128, 2k: 400 TFLOP/s"]


@pytest.mark.parametrize("name", ["attention_h200", "attention_depth512_h200", "products_h200"])
def test_all_is_inside_the_picture(name) -> None:
    data = measured.document(RESULTS / f"{name}.jsonl")
    picture = drawn(data)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    lines = heights(picture)
    assert len(lines) == len(data["configs"])
    for panel in picture.iter(f"{SVG}g"):
        x, y = map(float, re.findall(r"[\d.]+", panel.attrib["transform"]))
        for text in panel.iter(f"{SVG}text"):
            ends = {"end": -1, "middle": 0.5}.get(text.attrib.get("text-anchor", ""), 1)
            length = 7 * len(text.text or "") * ends
            assert 0 <= x + float(text.attrib["x"]) + length <= width
            assert 0 < y + float(text.attrib["y"]) < height


def test_files(tmp_path, make_result) -> None:
    path = tmp_path / "new" / "p.svg"
    draw_plot(document(make_result()), path)
    text = path.read_text()
    assert text.startswith("<?xml")
    assert "prefers-color-scheme:dark" in text
    assert [p.name for p in path.parent.iterdir()] == ["p.svg"]


def test_nothing_measured_is_not_drawn(tmp_path, make_result) -> None:
    with pytest.raises(ConfigError, match="nothing was measured"):
        draw_plot(document(make_result(sizes=())), tmp_path / "p.svg")
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has to end in \.svg"):
        check_plot(Path("p.png"))


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([0.956, 1.236, 1.0], 0.9, 1.3, 0.1),
        ([4.39, 5.42, 1.0], 0, 6, 1),
        ([200.0], 199, 201, 0.5),
        ([1.0, 1.0], 0.99, 1.01, 0.01),
    ],
)
def test_a_scale_holds_all_values_in_round_steps(values, low, high, step) -> None:
    scale = scale_of(values)
    assert scale.low <= min(values) <= max(values) <= scale.high
    assert len(scale.grid) <= 7
    assert (scale.low, scale.high) == (pytest.approx(low), pytest.approx(high))
    assert scale.step == step


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    assert spread([10, 100, 50], 15, 0, 200) == [10, 100, 50]
    assert spread([50, 52, 48], 15, 0, 200) == [50, 65, 35]
    assert spread([199, 198, 100], 15, 0, 200) == [200, 185, 100]
    assert spread([0, 0, 0], 15, 0, 200) == [0, 15, 30]
    placed = spread([10, 24, 30, 31, 90], 15, 0, 200)
    assert all(b - a >= 15 for a, b in itertools.pairwise(placed))


def test_lines_have_different_colours() -> None:
    assert len(set(colours_of(10))) == 10
    assert colours_of(1) == colours_of(3)[:1]


@pytest.mark.parametrize(("count", "upright"), [(5, False), (30, True)])
def test_words_that_do_not_fit_beside_each_other_stand_upright(count: int, upright: bool) -> None:
    ticks = tuple(f"{64 * i}x28672x4096" for i in range(1, count + 1))
    line = Line("chosen", tuple(Point(i, 1.0 + i / 100, None, "") for i in range(count)))
    picture = Picture(
        title="t", subtitle="s", axis="sizes", ticks=ticks, panels=(Panel("p", (line,)),),
        reference=1.0, legend="", remark="",
    )  # fmt: skip
    root = ElementTree.fromstring(svg(picture))
    turned = [group for group in root.iter(f"{SVG}g") if "rotate" in group.attrib["transform"]]
    assert len(turned) == (count if upright else 0)
    for group in turned:
        (word,) = group.iter(f"{SVG}text")
        place = float(re.findall(r"[\d.]+", group.attrib["transform"])[1])
        (axis,) = (text for text in root.iter(f"{SVG}text") if text.text == "sizes")
        assert place + 7 * len(word.text or "") < float(axis.attrib["y"])  # none touches it
    assert {text.text for text in root.iter(f"{SVG}text")} >= set(ticks)
