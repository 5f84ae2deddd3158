"""Tables as text: widths, breaks between words, and words that stay whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fa4gen.cli.table import cell_width, table_lines


def lines(rows, most=None, columns=None, **options) -> list[str]:
    columns = columns or [str(i) for i in range(len(rows[0]))]
    return list(table_lines(columns, rows, most=most, **options))


def test_without_a_limit_a_cell_is_a_line() -> None:
    assert lines([("a b c" * 30, "x")])[1] == f"{'a b c' * 30}  x"


def test_what_one_column_leaves_the_others_get() -> None:
    rows = [("name", "one two three four", "1")]
    assert lines(rows, 19) == ["0     1           2", "name  one two     1", "      three four"]


def test_a_table_of_no_rows_is_its_head() -> None:
    assert list(table_lines(("a", "bcd"), [], right=("bcd",))) == ["a  bcd"]


def test_right_aligned_columns_and_lines_of_a_cell() -> None:
    assert lines([("a\nb", "5")], columns=("name", "number"), right=("number",)) == [
        "name  number",
        "a          5",
        "b",
    ]


CELLS = st.text(alphabet="ab /日", max_size=30)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(1, 60))
def test_every_word_is_whole_on_some_line(rows, most) -> None:
    shown = lines(rows, most, columns=("x", "y", "z"))
    words = [word for line in shown for word in line.split()]
    expected = [word for row in rows for cell in row for word in cell.split()]
    assert sorted(words) == sorted([*expected, "x", "y", "z"])


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(1, 99))
def test_the_limit_holds_unless_words_need_more(rows, most) -> None:
    shown = lines(rows, most, columns=("x", "y", "z"))
    longest = [
        max(cell_width(word) for cell in column for word in cell.split() or [""])
        for column in zip(("x", "y", "z"), *rows, strict=True)
    ]
    assert max(map(cell_width, shown)) <= max(most, sum(longest) + 4)
