"""Every published struct stands in a file of its name, with the members of its document."""

from __future__ import annotations

import re
from typing import Final

import pytest

from fa4gen.resources import data_root
from tests.rings.documents import MEMBERS

RINGS: Final = data_root("templates") / "device/rings"


def declared(source: str, struct: str) -> set[str]:
    """Names that a struct declares, its template parameters among them."""
    start = re.search(rf"^template <([^;{{]*)>\nstruct {struct} \{{\n", source, re.MULTILINE)
    assert start, struct
    body = source[start.end() : source.index("\n};", start.end())]
    body = re.sub(r"\{#.*?#\}|\{%.*?%\}|//[^\n]*", "", body, flags=re.DOTALL)
    body = re.sub(r"= \{[^{}]*\}", "", body)
    while "{" in body:
        body = re.sub(r"\{[^{}]*\}", ";", body)
    names = set(re.findall(r"(\w+)(?: = [^,>]*)?(?:,|$)", start[1]))
    for declaration in body.split(";"):
        text = " ".join(declaration.split())
        if "(" in text:
            names |= set(re.findall(r"(\w+)\(", text)[:1])
        elif alias := re.search(r"using (\w+) =", text):
            names.add(alias[1])
        else:
            names |= set(re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", text))
    return names


@pytest.mark.parametrize("file", MEMBERS)
def test_each_struct_has_the_members_of_its_document(file: str) -> None:
    struct, members = MEMBERS[file]
    source = (RINGS / f"{file}.cuh.j2").read_text(encoding="utf-8")
    assert set(members.split()) - declared(source, struct) == set()


def test_a_member_that_is_missing_is_found() -> None:
    source = """\
template <int32 num_stages, bool is_k = true>
struct Ring {
  uint32 mbar;  // size
  static constexpr int32 first = 0, second = 1;
  using Stage = int32;
  __device__ __forceinline__ void wait(uint32 part) const { release(part); }
};
"""
    names = {"num_stages", "is_k", "mbar", "first", "second", "Stage", "wait"}
    assert names <= declared(source, "Ring")
    assert not {"size", "get", "third"} & declared(source, "Ring")
