# ruff: noqa: E501 (the lines under test are long)
"""Long lines are broken where the compiler sees no difference."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_configs import draw_numbered

from fa4gen.config.find import shipped_configs
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.render import render as module
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.render.wrap import MAX_COLUMNS, Line, split_comment, wrap
from tests.shipped import loaded, plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SHIPPED: Final = shipped_configs()
TEMPLATES: Final = open_templates()
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|[^\w\s]')

CALL = (
    "  tma_load_5d(destination, query_map, first_row + rows_of_a_tile * number, panel, head, batch"
)
KERNEL: Final = f"""\
// A comment that is longer than the hundred columns that a line may have, which goes on in the line
// below, where its paragraph does; and then ends. A comment that is longer than the hundred columns that
// it may have.
//   role  a table goes on in the column of its text, which is longer than what is left of these hundred
constexpr int32 kWindow = 1;                   // a meaning in a column of its own, which is longer than left
__device__ __forceinline__ void wait(int32 part) const {{ mbarrier_wait(full(part), state.phase(part)); step(); }}
{CALL}, barrier,
              policy);
  asm volatile("instruction.with.modifiers.that.take.nearly.all.of.the.columns [%0, {{%1, %2, %3}}], [%4];"
               :: "r"(0) : "memory");
  const uint32 address = base + kOffsetOfAllStages * stage_of_this_block + kOffsetOfAllRows * row_of_it;
  arrive();  // what follows is a reason of its own, which is said above since it does not fit beside
#error "A line of the preprocessor ends at its end, however long it is: it is left as it is, and no other."
#pragma message( \\
  "The text of a message becomes two strings, which the compilers join as they join those of the program.")
#pragma unroll \\
    "So does the line that goes on with another one, whatever is in it, for what reads it may not join the two"
"""
WRAPPED: Final = """\
// A comment that is longer than the hundred columns that a line may have, which goes on in the line
// below, where its paragraph does; and then ends. A comment that is longer than the hundred columns
// that it may have.
//   role  a table goes on in the column of its text, which is longer than what is left of these
//         hundred
constexpr int32 kWindow = 1;                   // a meaning in a column of its own, which is longer
                                               // than left
__device__ __forceinline__ void wait(int32 part) const {
  mbarrier_wait(full(part), state.phase(part));
  step();
}
  tma_load_5d(destination, query_map, first_row + rows_of_a_tile * number, panel, head, batch,
              barrier, policy);
  asm volatile("instruction.with.modifiers.that.take.nearly.all.of.the.columns [%0, {%1, %2, %3}],"
               " [%4];"
               :: "r"(0) : "memory");
  const uint32 address = base + kOffsetOfAllStages * stage_of_this_block +
      kOffsetOfAllRows * row_of_it;
  arrive();  // what follows is a reason of its own, which is said above since it does not fit
             // beside
#error "A line of the preprocessor ends at its end, however long it is: it is left as it is, and no other."
#pragma message( \\
  "The text of a message becomes two strings, which the compilers join as they join those of the" \\
  " program.")
#pragma unroll \\
    "So does the line that goes on with another one, whatever is in it, for what reads it may not join the two"
"""


def joined(lines: list[Line]) -> str:
    return "\n".join(line.text for line in lines)


def tokens(text: str) -> list[str]:
    """Return a compiler's view: tokens, adjacent strings as one, ends of preprocessor lines."""
    found: list[str] = []
    for line in text.replace("\\\n", "").split("\n"):
        if line.startswith("#"):
            found.append("\n")
        for token in TOKEN.findall(split_comment(line)[0]):
            if token[0] == '"' and found and found[-1][0] == '"':
                found[-1] = found[-1][:-1] + token[1:]
            else:
                found.append(token)
        if line.startswith("#"):
            found.append("\n")
    return found


def remarks(text: str) -> list[str]:
    """The words of all comments, in any order: comments after a line may move above it."""
    comments = (split_comment(line)[1] for line in text.split("\n"))
    return sorted(word for comment in comments for word in comment.replace("//", " ").split())


def test_breaks() -> None:
    assert joined(wrap(KERNEL)) == WRAPPED


def test_lines_know_where_they_came_from() -> None:
    lines = KERNEL.split("\n")
    for line in wrap(KERNEL):
        source = lines[line.origin]
        assert line.text == source or len(line.text) < len(source) or line.text.startswith("//")
    origins = [line.origin for line in wrap(KERNEL)]
    assert origins == sorted(origins)


MISPLACED: Final = """\
wgmma_m64n144k16(scores,
      descriptor(a, 1), [&](int32 k) {
  return k;
},
      "a (string", store(first +
                             second));
tma_load_clipped_5d(destination, map,
    column_of_the_first_panel, row_of_the_tile, head, place_in_the_list_of_pages, barrier, policy);
asm volatile("instruction [%0], %1;"
             ::"r"(destination), "l"(&map),
               "r"(barrier));
const int32 last[2] = {
    min(a, b), (x >> 2) +
        1, template_of<1,
     2>(c)};
"""
PLACED: Final = """\
wgmma_m64n144k16(scores,
                 descriptor(a, 1), [&](int32 k) {
  return k;
},
                 "a (string", store(first +
                                        second));
tma_load_clipped_5d(destination, map,
                    column_of_the_first_panel, row_of_the_tile, head, place_in_the_list_of_pages,
                    barrier, policy);
asm volatile("instruction [%0], %1;"
             ::"r"(destination), "l"(&map),
               "r"(barrier));
const int32 last[2] = {
    min(a, b), (x >> 2) +
        1, template_of<1,
                       2>(c)};
"""


def test_what_continues_is_in_the_column_of_its_bracket() -> None:
    assert joined(wrap(MISPLACED)) == PLACED
    assert joined(wrap(PLACED)) == PLACED


GENERATED: Final = [
    file
    for file in sorted((Path(__file__).parents[2] / "generated").glob("*/*/*"))
    if file.suffix in (".cu", ".cuh", ".h")
]


def test_lines_of_generated_files_are_in_the_column_of_their_bracket() -> None:
    """Checked for calls and parameters: a line ends in a list of (...) begun in the same line."""
    seen, wrong = 0, []
    for file in GENERATED:
        lines = file.read_text().split("\n")
        for above, line in pairwise(lines):
            code, comment = split_comment(above)
            if not code.endswith(",") or comment or "asm" in code or '"' in code:
                continue
            last = max((i for i in range(len(code)) if code[:i].count("(") > code[:i].count(")")
                        and code[i - 1] == "(" and code[i:].count("(") == code[i:].count(")")),
                       default=0)  # fmt: skip
            if last and "{" not in code[last:]:
                seen += 1
                if len(line) - len(line.lstrip()) != last:
                    wrong.append((file.name, line))
    assert seen > 1000
    assert not wrong


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_kernels_are_the_same_program(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wrap", lambda text: [Line(x, 0) for x in text.split("\n")])
    plain = render(plan_of(path), loaded(path), TEMPLATES).files
    for name, before in plain.items():
        if name.endswith(".json"):
            continue
        text = joined(wrap(before))
        assert tokens(text) == tokens(before), name
        assert remarks(text) == remarks(before), name
        assert joined(wrap(text)) == text, name
        assert max(len(line) for line in text.split("\n")) <= MAX_COLUMNS, name


def too_long(keys: Mapping[str, Any]) -> list[str]:
    """The lines of a config's files that have too many columns."""
    one = load_mapping(keys, keys["name"])
    files = render(build_plan(one.config), one, TEMPLATES).files
    texts = [text for name, text in files.items() if not name.endswith(".json")]
    return [line for text in texts for line in text.split("\n") if len(line) > MAX_COLUMNS]


LONG_NAME = "n" * 64


@pytest.mark.parametrize(
    "keys",
    [
        {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3", "swap_operands": True,
         "scales": {"a": "1x128", "b": "128x128"}},
        {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128,
         "mask": {"dilated": 4046537}},
        {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128,
         "mask": "key // 147 == query // 147 or key <= query or key < 147"},
    ],
)  # fmt: skip
def test_brackets_within_brackets_are_broken(keys: dict[str, Any]) -> None:
    assert too_long({**keys, "name": LONG_NAME}) == []


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_no_line_of_any_config_is_too_long(number: int) -> None:
    assert too_long({**draw_numbered(0, number), "name": LONG_NAME}) == []


def test_a_comment_goes_on_behind_a_word_that_is_too_long() -> None:
    word = "w" * MAX_COLUMNS
    assert joined(wrap(f"  // {word} and more")) == f"  // {word}\n  // and more"
    assert joined(wrap(f"  // {word}")) == f"  // {word}"


WORDS = st.sampled_from(
    ["a", "f(", ")", ",", "+", "=", "{", "}", ";", "[", "]", "<", ">", "?", ":", "//", "x" * 30,
     '"a b c"', '"' + "y z " * 12 + '"', "if (", "kLong * kName", "__device__"]
)  # fmt: skip


@given(st.lists(st.lists(WORDS, min_size=1, max_size=30), min_size=1, max_size=4))
def test_whatever_the_line_the_tokens_stay(lines: list[list[str]]) -> None:
    text = "\n".join("  " * number + " ".join(line) for number, line in enumerate(lines))
    broken = joined(wrap(text))
    assert tokens(broken) == tokens(text)
    assert remarks(broken) == remarks(text)
