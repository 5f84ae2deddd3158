from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.errors import Problem, TemplateError
from fa4gen.render.environment import TemplateSet
from fa4gen.render.render import render

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "attention_sm90/kernel.cu.j2"


@pytest.fixture
def problem_of(load_text, write_template, user_templates):
    """problem_of({template: text}) renders and returns the one problem of the TemplateError."""

    def get(texts: dict[str, str]) -> Problem:
        for name, text in texts.items():
            write_template(name, text)
        loaded = load_text()
        with pytest.raises(TemplateError) as caught:
            render(build_plan(loaded.config), loaded, user_templates())
        (problem,) = caught.value.problems
        return problem

    return get


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "remedy"),
    [
        (
            "a\n{{ plan.num_kv_stage }}\n",
            2,
            9,
            "plan has no field 'num_kv_stage'",
            "plan.num_kv_stages?",
        ),
        ("a\n\n  {{ depth }}\n", 3, 6, "'depth' is not defined", "Did you mean plan.depth?"),
        ("{{ generater }}\n", 1, 4, "'generater' is not defined", "Did you mean generator?"),
        (
            "{% for b in plan.barriers %}\n{{ b.nam }}\n{% endfor %}\n",
            2,
            6,
            "Barrier has no field 'nam'",
            "Barrier.name?",
        ),
        ("a\n{% if plan.lse %}\n", 2, 1, "template syntax: Unexpected end of template", ""),
        ("a\n{{ plan. }}\n", 2, 1, "template syntax: expected name or number", ""),
        ("{{ 1 | no_filter }}\n", 1, 1, "template syntax: No filter named 'no_filter'", ""),
        (
            "x\n{% include 'no/such.j2' %}\n",
            2,
            13,
            "there is no template 'no/such.j2'",
            "Add the file",
        ),
        ("{{ plan.region('nowhere') }}\n", 1, 1, "the plan has no 'nowhere' here", ""),
        ("a\n{{ 1 // 0 }}\n", 2, 1, "(ZeroDivisionError)", ""),
        ("{{ none }}\n", 1, 1, "the expression is None", ""),
        ("{{ plan.barriers + 1 }}\n", 1, 1, "(TypeError)", ""),
        ("a\n\n\nb\n", 3, 1, "two blank lines in a row, at line 3 of small.cu", "Move one"),
        (
            "int x[] = {{ '{{1}}' }};\n",
            1,
            1,
            "template syntax '{{' in the output",
            "space between C++ braces",
        ),
        ("a  \n", 1, 1, "blanks at the end of a line, at line 1 of small.cu", ""),
    ],
)
def test_every_mistake_names_its_place(
    problem_of, tmp_path: Path, text: str, line: int, column: int, message: str, remedy: str
) -> None:
    problem = problem_of({ROOT: text})
    assert problem.file == str(tmp_path / "templates" / ROOT)
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message
    assert remedy in problem.remedy
    assert f"rendering {tmp_path / 'small.yaml'}" in problem.message


def test_three_lines_of_context_with_the_culprit_marked(problem_of) -> None:
    problem = problem_of({ROOT: "one\ntwo\n{{ nope }} three\nfour\nfive\n"})
    assert problem.message.splitlines()[1:] == [
        "    2 | two",
        "  > 3 | {{ nope }} three",
        "    4 | four",
    ]


def test_context_at_the_edges_of_the_file(problem_of) -> None:
    assert problem_of({ROOT: "{{ nope }}"}).message.splitlines()[1:] == ["  > 1 | {{ nope }}"]


def test_the_trail_of_includes_is_reported(problem_of, tmp_path: Path) -> None:
    problem = problem_of(
        {
            ROOT: "a\n{% include 'x/middle.j2' %}\n",
            "x/middle.j2": "{% include 'x/leaf.j2' %}\n",
            "x/leaf.j2": "\n{{ nope }}\n",
        }
    )
    root = tmp_path / "templates"
    assert (problem.file, problem.line) == (str(root / "x/leaf.j2"), 2)
    assert (
        f"included from {root / 'x/middle.j2'}:1\n  included from {root / ROOT}:2"
        in problem.message
    )


def test_a_syntax_error_in_an_included_template_is_placed_there(problem_of, tmp_path: Path) -> None:
    problem = problem_of({ROOT: "a\n{% include 'x/leaf.j2' %}\n", "x/leaf.j2": "b\n{% endif %}\n"})
    assert (problem.file, problem.line) == (str(tmp_path / "templates/x/leaf.j2"), 2)
    assert f"included from {tmp_path / 'templates' / ROOT}:2" in problem.message


def test_an_error_inside_a_macro_names_the_macros_line(problem_of) -> None:
    problem = problem_of({ROOT: "{% macro m(x) %}\n{{ x.y }}\n{% endmacro %}\n{{ m(1) }}\n"})
    assert problem.line == 2
    assert ROOT + ":4" in problem.message


def test_the_config_key_that_the_line_reads_is_named_with_its_place(
    problem_of, tmp_path: Path
) -> None:
    problem = problem_of({ROOT: "{{ plan.num_kv_stages // 0 }} {{ plan.BN }}\n"})
    assert problem.key == "num_kv_stages"
    assert f"config key num_kv_stages: 2 ({tmp_path / 'small.yaml'}:5)" in problem.message
    assert "config key BN: 96 (not set: the default)" in problem.message


def test_a_breach_inside_an_include_is_traced_to_its_line(problem_of, tmp_path: Path) -> None:
    problem = problem_of({ROOT: "a\n{% include 'x/leaf.j2' %}\n", "x/leaf.j2": "b\nc \nd\n"})
    assert (problem.file, problem.line) == (str(tmp_path / "templates/x/leaf.j2"), 2)


def test_an_included_template_that_is_no_text(problem_of, write_template, tmp_path: Path) -> None:
    write_template("x/leaf.j2", "").write_bytes(b"\xff")
    problem = problem_of({ROOT: "{% include 'x/leaf.j2' %}\n"})
    assert problem.file == str(tmp_path / "templates/x/leaf.j2")
    assert "not UTF-8" in problem.message


def test_a_missing_root_template_tells_where_it_was_looked_for(load_text, tmp_path: Path) -> None:
    loaded = load_text()
    with pytest.raises(TemplateError) as caught:
        render(build_plan(loaded.config), loaded, TemplateSet((tmp_path,)))
    (problem,) = caught.value.problems
    assert f"there is no template '{ROOT}'" in problem.message
    assert str(tmp_path) in problem.remedy


@pytest.mark.parametrize(
    "text",
    [
        "{{ cycler.__init__.__globals__.os.popen('touch owned') }}",
        "{{ plan.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ ('{0.__class__}').format(plan) }}",
        "{% set x = plan.__init__.__globals__ %}{{ x }}",
    ],
)
def test_a_template_reaches_nothing_of_python(problem_of, text: str) -> None:
    problem = problem_of({ROOT: text})
    assert "unsafe" in problem.message or "is undefined" in problem.message, problem
    assert problem.line == 1
