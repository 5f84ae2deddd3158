# ruff: noqa: E501 (the lines under test are long)
"""Long lines are broken where the compiler sees no difference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.find import shipped_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.render import render as module
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.render.wrap import MAX_COLUMNS, Line, split_comment, wrap

if TYPE_CHECKING:
    from pathlib import Path

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
    """What a compiler sees: tokens, adjacent strings as one, where preprocessor lines end."""
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


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_kernels_are_the_same_program(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_config(path)
    plan = build_plan(loaded.config)
    monkeypatch.setattr(module, "wrap", lambda text: [Line(x, 0) for x in text.split("\n")])
    plain = render(plan, loaded, TEMPLATES).files
    for name, before in plain.items():
        if name.endswith(".json"):
            continue
        text = joined(wrap(before))
        assert tokens(text) == tokens(before), name
        assert remarks(text) == remarks(before), name
        assert joined(wrap(text)) == text, name
        assert max(len(line) for line in text.split("\n")) <= MAX_COLUMNS, name


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
