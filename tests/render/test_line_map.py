from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.render.environment import TemplateSet
from fa4gen.render.line_map import LineTags, split_tags


def origins(tmp_path, templates: dict[str, str], **names: object) -> list[tuple[str, str]]:
    """(rendered line, "template:line" or "") of each line."""
    for name, text in templates.items():
        (tmp_path / name).write_text(text)
    texts = [
        TemplateSet((tmp_path,), extensions).environment().get_template("root").render(**names)
        for extensions in ((), (LineTags,))
    ]
    places = split_tags(texts[1], texts[0])
    return [
        (line, f"{place[0]}:{place[1]}" if place else "")
        for line, place in zip(texts[0].split("\n"), places, strict=True)
    ]


def test_loops_conditions_and_blank_lines(tmp_path) -> None:
    root = "a\n{% for i in (1, 2) %}\n  b{{ i }}\n\n{% endfor %}\n{{ x }}\n{% if x %}\nc\n{% endif %}\nd\n"  # noqa: E501
    assert origins(tmp_path, {"root": root}, x=7) == [
        ("a", "root:1"),
        ("  b1", "root:3"),
        ("", "root:4"),
        ("  b2", "root:3"),
        ("", "root:4"),
        ("7", "root:6"),
        ("c", "root:8"),
        ("d", "root:10"),
        ("", "root:11"),
    ]


def test_includes_and_macros(tmp_path) -> None:
    templates = {
        "root": "{% from 'lib' import twice %}\na\n{% include 'part' %}\n{{ twice('x') }}\nb\n",
        "part": "one\n{% set y = 1 %}\ntwo\n",
        "lib": "{% macro twice(x) %}\n{{ x }} 1\n{{ x }} 2\n{%- endmacro %}\n",
    }
    assert origins(tmp_path, templates)[:6] == [
        ("a", "root:2"),
        ("one", "part:1"),
        ("two", "part:3"),
        ("x 1", "lib:2"),  # not root:4, which only calls the macro
        ("x 2", "lib:3"),
        ("b", "root:5"),
    ]


def test_text_changed_by_a_filter_keeps_its_map_if_the_lines_agree(tmp_path) -> None:
    root = "{% filter indent(2) %}\na\n\nb\n{% endfilter %}\n"
    assert [line for line, _ in origins(tmp_path, {"root": root})][:3] == ["a", "", "  b"]
    assert origins(tmp_path, {"root": root})[2] == ("  b", "root:4")


def test_a_filter_that_measures_the_text_voids_the_map(tmp_path) -> None:
    root = "{% set t %}\nabc\n{% endset %}\n{{ t | length }}\n"
    assert origins(tmp_path, {"root": root})[0] == ("4", "")


@pytest.mark.filterwarnings("ignore::pytest.PytestWarning")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="ab {}%\t", max_size=6), min_size=1, max_size=8))
def test_plain_text_maps_line_to_line(tmp_path_factory, lines: list[str]) -> None:
    text = "\n".join(line.replace("{", "(").replace("%", "(") for line in lines)
    got = origins(tmp_path_factory.mktemp("t"), {"root": text})
    if text:
        assert [place for _, place in got] == [f"root:{n}" for n in range(1, len(lines) + 1)]
