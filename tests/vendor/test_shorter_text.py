"""Tabs, and lists of operands: a vendored file's text is shorter and means the same."""

from __future__ import annotations

import re
import subprocess

import pytest

from fa4gen.vendor.compact import filled_heads
from fa4gen.vendor.host_build import find_c_compiler
from fa4gen.vendor.indent import tabbed
from fa4gen.vendor.operands import SIZES, definitions, short_lists

SPACES = """\
/* One
 * comment. */
int f(int first,
      int second) {
  const int sum = first +
                  second;
#ifdef X
  if (sum > 0 &&
      first) {
    return 1; /* and
               * more */
  }
#endif
  *first = sum;
  return sum;
}
"""
TABS = """\
/* One
 * comment. */
int f(int first,
>>int second) {
>const int sum = first +
>>>second;
#ifdef X
>if (sum > 0 &&
>>>first) {
>>return 1; /* and
>>>> * more */
>}
#endif
>*first = sum;
>return sum;
}
"""


def test_tabs() -> None:
    assert tabbed(SPACES) == TABS.replace("> 0", "! 0").replace(">", "\t").replace("! 0", "> 0")


@pytest.mark.parametrize("text", ["", "\n", "  a", "      b\n  c", " * d\n   * e\n"])
def test_tabs_keep_all_that_is_not_blank(text) -> None:
    assert tabbed(text).split() == text.split()
    assert tabbed(text).count("\n") == text.count("\n")


def operands(kind: str, name: str, first: int, count: int) -> str:
    return ", ".join(f'"{kind}"({name}[{i}])' for i in range(first, first + count))


@pytest.mark.parametrize("count", [1, 4, 7, 8, 9, 16, 31, 64, 70, 128, 191])
def test_the_preprocessor_gives_back_the_list(count) -> None:
    text = f'asm("x" : {operands("=f", "d", 3, count)} : {operands("r", "a", 0, 2)});\n'
    wrapped = text.replace('], "', '],\n        "').replace('), "', '),\n       "')
    short = short_lists(wrapped, "P")
    assert bool(re.search(r"P_\d+\(", short)) == (count >= 8)
    assert not re.search(r"P_\d+", short) or len(short) < len(wrapped)
    command = [*find_c_compiler(), "-E", "-P", "-xc", "-"]
    source = definitions(short, "P") + short
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    places = [eval(place) for place in re.findall(r"d\[([^]]*)\]", done.stdout)]
    assert places == list(range(3, 3 + count))
    assert re.sub(r"\[[^]]*\]", "", done.stdout).split() == re.sub(r"\[[^]]*\]", "", text).split()


def test_lists_are_apart_by_kind_array_and_place() -> None:
    parts = [operands("=f", "d", 0, 8), operands("+f", "d", 8, 8), operands("+f", "e", 16, 8)]
    text = ", ".join([*parts, operands("+f", "e", 25, 8)])
    assert short_lists(text, "P").count("P_4(") == 8
    assert definitions("", "P") == ""
    for size in SIZES:
        assert definitions(f"P_{size}(", "P").count("#define") == 3 - SIZES.index(size)


def test_registers_that_are_named_twice_or_once_are_a_macro() -> None:
    names = [f"%{i}" for i in range(32)]
    lists = ", ".join(names), ", ".join(names[:16]) + ', "\n      "' + ", ".join(names[16:])
    for text in lists:
        short = short_lists(f'asm("ld {{{text}}}, [%32];");\n', "P")
        assert short == 'asm("ld {" P_REGISTERS "}, [%32];");\n'
        source = definitions(short, "P") + short
        command = [*find_c_compiler(), "-E", "-P", "-xc", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
        assert eval(done.stdout.removeprefix("asm").rstrip(";\n")) == f"ld {{{lists[0]}}}, [%32];"
    fewer = 'asm("ld {%0, %1, %2, %3}, [%4];");\n'
    assert short_lists(fewer, "P") == fewer


def test_heads_of_static_functions_are_filled_again() -> None:
    text = (
        "static int add(const long_name *first,\n"
        "               int second) {\n"
        "  return first->x + second;\n}\n"
        "int other(int first,\n          int second);\n"
        "static const int table[] = {f(1,\n    2)};\n"
    )
    assert filled_heads(text) == text.replace("*first,\n               int", "*first, int")
