from __future__ import annotations

import jinja2
import pytest

from fa4gen.errors import ConfigError, TemplateError
from fa4gen.render.environment import TemplateSet, camel, open_templates
from fa4gen.resources import data_root


def render_text(tmp_path, text: str, **names: object) -> str:
    (tmp_path / "t.j2").write_text(text)
    return TemplateSet((tmp_path,)).environment().get_template("t.j2").render(**names)


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("num_kv_stages", "kNumKvStages"),
        ("BM", "kBM"),
        ("depth", "kDepth"),
        ("stage_stride_cols", "kStageStrideCols"),
    ],
)
def test_camel_spells_the_cpp_constant_of_a_key(name: str, constant: str) -> None:
    assert camel(name) == constant


def test_filters_and_literals_in_a_template(tmp_path) -> None:
    text = "{{ 'BN' | camel }} {{ flag }} {{ scale }}f\n"
    assert render_text(tmp_path, text, flag=True, scale=8.0) == "kBN true 8.0f\n"


@pytest.mark.parametrize("value", [None, float("inf"), float("nan")])
def test_what_cpp_cannot_spell_is_refused(tmp_path, value: object) -> None:
    with pytest.raises(ValueError, match="the expression is"):
        render_text(tmp_path, "{{ x }}", x=value)


def test_an_inline_if_without_else_writes_nothing(tmp_path) -> None:
    assert render_text(tmp_path, "a{{ ', b' if pair }}", pair=False) == "a"


def test_an_undefined_name_is_an_error(tmp_path) -> None:
    with pytest.raises(jinja2.UndefinedError, match="'pear' is undefined"):
        render_text(tmp_path, "{{ pear }}")


def test_block_lines_leave_no_trace_and_the_last_newline_stays(tmp_path) -> None:
    assert render_text(tmp_path, "a\n  {% if true %}\nb\n  {% endif %}\n") == "a\nb\n"


def test_the_users_folder_comes_first_and_the_shipped_one_fills_in(tmp_path) -> None:
    (tmp_path / "device/ptx").mkdir(parents=True)
    (tmp_path / "device/ptx" / "types.cuh.j2").write_text("mine\n")
    templates = open_templates(tmp_path)
    assert templates.source("device/ptx/types.cuh.j2").text == "mine\n"
    shipped = templates.source("device/ptx/math.cuh.j2")
    assert shipped.path == data_root("templates") / "device/ptx" / "math.cuh.j2"


@pytest.mark.parametrize("made", [False, True])
def test_a_template_folder_that_is_none_is_refused(tmp_path, made: bool) -> None:
    path = tmp_path / "nowhere"
    if made:
        path.write_text("")
    with pytest.raises(ConfigError) as caught:
        open_templates(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert ("is not a folder" if made else "does not exist") in problem.message


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "/etc/passwd", "a\\b", ""])
def test_names_stay_inside_their_root(tmp_path, name: str) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "in").mkdir()
    with pytest.raises(jinja2.TemplateNotFound):
        TemplateSet((tmp_path / "in",)).source(name)


def test_the_hash_does_not_depend_on_line_ends(tmp_path) -> None:
    (tmp_path / "unix").write_bytes(b"a\nb\n")
    (tmp_path / "dos").write_bytes(b"a\r\nb\r\n")
    templates = TemplateSet((tmp_path,))
    assert templates.source("unix").sha256 == templates.source("dos").sha256


def test_a_template_that_is_no_text_is_refused(tmp_path) -> None:
    (tmp_path / "t.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateError, match="not UTF-8"):
        TemplateSet((tmp_path,)).source("t.j2")


def test_used_names_only_what_this_environment_loaded(tmp_path) -> None:
    (tmp_path / "outer").write_text("{% if deep %}{% import 'inner' as i %}{{ i.x }}{% endif %}")
    (tmp_path / "inner").write_text("{% from 'leaf' import y %}{% set x = y %}")
    (tmp_path / "leaf").write_text("{% set y = 1 %}")
    templates = TemplateSet((tmp_path,))
    closure = {"outer", "inner", "leaf"}
    for deep, used in [(True, closure), (False, {"outer"}), (True, closure)]:
        environment = templates.environment()
        assert environment.get_template("outer").render(deep=deep) == ("1" if deep else "")
        assert set(environment.used) == used


def test_put_writes_the_lines_of_a_macro_and_no_line_for_none(tmp_path) -> None:
    (tmp_path / "keys.j2").write_text(
        "{% macro rows() %}\n  rows;\n{% endmacro %}\n{% macro empty() %}{% endmacro %}\n"
    )
    (tmp_path / "role.j2").write_text(
        "{% import 'keys.j2' as keys %}\nfirst;\n  {% put keys.rows() %}\n"
        "{% put keys.empty() %}\nlast;\n"
    )
    environment = TemplateSet((tmp_path,)).environment()
    assert environment.get_template("role.j2").render() == "first;\n  rows;\nlast;\n"
