from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fa4gen.bench.plot import check_plot, draw_plot
from fa4gen.errors import ConfigError, MissingCapabilityError


@pytest.mark.parametrize(
    ("name", "beginning"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.PDF", b"%PDF")]
)
def test_a_picture_of_every_format(tmp_path, make_result, make_size, name, beginning) -> None:
    pytest.importorskip("matplotlib")
    alone = make_result("alone", sizes=(make_size(1024, 0.5),))
    path = tmp_path / "new" / name
    results = [make_result(), alone, make_result("none", sizes=())]
    draw_plot(results, path, title="attention forward, NVIDIA H200")
    assert path.read_bytes().startswith(beginning)
    assert [p.name for p in path.parent.iterdir()] == [name], "nothing is left beside it"


def test_a_picture_replaces_the_old_one(tmp_path, make_result) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "p.png"
    path.write_bytes(b"\x89PNG old")
    draw_plot([make_result(f"k{i}") for i in range(4)], path, title="t")
    assert len(path.read_bytes()) > 1000


def test_nothing_measured_is_not_drawn(tmp_path, make_result) -> None:
    with pytest.raises(ConfigError, match="nothing was measured"):
        draw_plot([make_result(sizes=())], tmp_path / "p.png", title="t")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_ending_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has to end in \.png, \.svg, \.pdf"):
        check_plot(Path("p.jpeg2000"))


def test_without_matplotlib(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingCapabilityError) as caught:
        check_plot(Path("p.png"))
    assert "pip install 'fa4gen[plot]'" in caught.value.problems[0].remedy
