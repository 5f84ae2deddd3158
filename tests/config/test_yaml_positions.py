from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.config.yaml_positions import MAX_VALUES, Place, dotted, read_document
from fa4gen.errors import ConfigError, Problem

TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


def syntax_problem(text: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        read_document(text, "f.yaml")
    [problem] = caught.value.problems
    return problem


def problems(text: str) -> list[tuple[int, int, str]]:
    return [(p.line, p.column, p.message) for p in read_document(text, "f.yaml").problems]


@settings(max_examples=50)
@given(VALUES.filter(lambda value: value is not None))
def test_json_is_read_as_what_it_says(value: object) -> None:
    # Codes 0x80 to 0x9f are not YAML characters: JSON's escapes express them.
    text = json.dumps(value, ensure_ascii=True)

    document = read_document(text, "f")

    assert document.value == value
    assert not document.problems


@settings(max_examples=40)
@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=4))
def test_every_place_is_where_its_key_and_value_stand(data: dict[str, object]) -> None:
    text = json.dumps(data, indent=2)
    lines = text.split("\n")

    places = read_document(text, "f").places

    for key, value in data.items():
        place = places[(key,)]
        assert lines[place.line - 1][place.column - 1 :].startswith(json.dumps(key))
        written = lines[place.value_line - 1][place.value_column - 1 :]
        assert written.startswith(json.dumps(value, indent=2).split("\n")[0])


def test_places_of_nested_keys_and_items() -> None:
    places = read_document("a:\n  - 1\n  - {b: 2}\n", "f").places

    assert places == {
        (): Place(1, 1, 1, 1),
        ("a",): Place(1, 1, 2, 3),
        ("a", 0): Place(2, 5, 2, 5),
        ("a", 1): Place(3, 5, 3, 5),
        ("a", 1, "b"): Place(3, 6, 3, 9, 9),
    }


def test_a_key_given_twice_names_both_places_and_keeps_the_first() -> None:
    document = read_document("a: 1\nb: {c: 1, c: 2}\na: 3\n", "f.yaml")

    assert document.value == {"a": 1, "b": {"c": 1}}
    assert [(p.line, p.column, p.key) for p in document.problems] == [(2, 11, "b.c"), (3, 1, "a")]
    assert "first at line 1, column 1" in document.problems[1].message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a:\n\tb: 1\n", (2, 1), "tab"),
        ("a: b: c", (1, 5), "second colon"),
        ("a: [1,", (1, 7), "'<stream end>'"),
        ("a: 'x", (1, 6), "quoted scalar that began at line 1, column 4"),
        ("a: @x", (1, 4), "'@'"),
        ("a: 1\n  b: 2", (2, 4), "second colon"),
        ("  a: 1\nb: 2", (2, 1), "does not line up"),
        ("- a\nb: 2", (2, 1), "does not line up"),
        ("a: *x", (1, 4), "undefined alias"),
        ("a: &x [*x]", (1, 4), "inside the value that it repeats"),
        ("a: 1\nb: \x01", (2, 4), "U+0001"),
        ("a: 1\n---\nb: 1", (2, 1), "second document"),
        ("[" * 100_000, (1, 101), "more than 100 brackets"),
        ("- " * 3000, (0, 0), "nested too deeply"),
    ],
)
def test_text_that_is_not_yaml(text: str, place: tuple[int, int], words: str) -> None:
    problem = syntax_problem(text)

    assert (problem.line, problem.column) == place
    assert words in problem.message
    assert problem.file == "f.yaml"
    assert problem.remedy or "alias" in problem.message or "began" in problem.message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: !!python/object/apply:os.system [x]", (1, 4), "!!python/object/apply:os.system"),
        ("a: !foo x", (1, 4), "!foo"),
        ("a: !!int 1", (1, 4), "the tag !!int means nothing here"),
        ("<<: {a: 1}", (1, 1), "merge keys"),
        ("[1]: 2", (1, 1), "must be a word"),
        ("? \n: 2", (1, 2), "colon without a key"),
        ("a: 017", (1, 4), "octal"),
    ],
)
def test_yaml_that_is_refused(text: str, place: tuple[int, int], words: str) -> None:
    [(line, column, message)] = problems(text)

    assert (line, column) == place
    assert words in message


def test_texts_and_aliases_are_followed() -> None:
    document = read_document("a: !!str 017\nc: &c [1]\nd: *c\n", "f")

    assert document.value == {"a": "017", "c": [1], "d": [1]}
    assert not document.problems


def test_an_alias_bomb_is_refused_early() -> None:
    levels = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 12)]

    problem = syntax_problem("\n".join(["l0: &l0 [1]", *levels]))

    assert f"more than {MAX_VALUES} values" in problem.message


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_document_is_none(text: str) -> None:
    assert read_document(text, "f").value is None


def test_dotted() -> None:
    assert dotted(("matrix", "depth", 2)) == "matrix.depth[2]"
    assert dotted(()) == ""


def test_too_many_values_are_refused_while_they_are_read() -> None:
    """Reading takes most of the time: a long list is not read to its end first."""
    with pytest.raises(ConfigError) as caught:
        read_document("- 1\n" * 200 + "@", "l.yaml", "launch file", 10)
    (problem,) = caught.value.problems
    assert "more than 10 values" in problem.message
    assert "Is this the right file?" in problem.remedy
    assert (problem.file, problem.line) == ("l.yaml", 21)
