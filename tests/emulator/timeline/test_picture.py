from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from fa4gen.emulator.timeline.picture import draw
from tests.emulator.timeline.traces import attention

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(svg: str, style: str) -> list[str]:
    root = ElementTree.fromstring(svg.encode())
    return [one.text or "" for one in root.iter(f"{NAMESPACE}text") if one.get("class") == style]


def test_the_picture_has_its_rows_and_figures() -> None:
    svg = draw(attention(8), title='of <a> & "b"')
    assert texts(svg, "text") == ["tensor core", "softmax", "issuer"]
    assert texts(svg, "text head") == ['of <a> & "b"']
    assert "busy 70% of the steady state, 100 cycles a block" in texts(svg, "quiet")[0]
    assert {"QK", "PV", "exp2"} <= set(texts(svg, "paper small"))
    assert {"scores", "weights"} <= set(texts(svg, "quiet small"))


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    notes = texts(draw(attention(8)), "quiet")
    assert "exponentials" in notes
    assert "copy by TMA" not in notes


def test_boxes_lie_where_their_cycles_are() -> None:
    root = ElementTree.fromstring(draw(attention(8), span=(0, 200)).encode())
    boxes = [one for one in root.iter(f"{NAMESPACE}rect") if one.get("class") == "QK"]
    drawn = [(float(one.get("x", 0)), float(one.get("width", 0))) for one in boxes[:2]]
    assert drawn == [(150, 240), (750, 240)]
    assert [one[0].text for one in boxes[:1]] == ["product: 40 cycles"]


def test_parts_without_a_gap_are_one_box() -> None:
    root = ElementTree.fromstring(draw(attention(8), span=(0, 100)).encode())
    boxes = [one for one in root.iter(f"{NAMESPACE}rect") if one.get("class") == "PV"]
    assert len(boxes) == 2  # with that of the legend


def test_it_is_the_same_each_time_and_needs_nothing_else() -> None:
    svg = draw(attention(8))
    assert svg == draw(attention(8))
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"href|url\(|@import|<script|<image", svg)


def test_without_products_there_is_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no matrix products"):
        draw({"traceEvents": []})
