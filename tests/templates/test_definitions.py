"""Each instruction is defined once, and kernels have nothing that they do not use."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import pytest

from fa4gen.config.find import shipped_configs
from fa4gen.render.instructions import FAMILIES
from fa4gen.resources import data_root
from tests.rings.documents import MEMBERS
from tests.shipped import files_of, loaded

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES: Final = data_root("templates")
SOURCES: Final = shipped_configs()

FUNCTION = re.compile(r"^(?:__host__ )?__device__ .*?\b(\w+)\(", re.MULTILINE)
BODY = re.compile(r"^(?:__host__ )?__device__ .*?\b(\w+)\((?:.|\n)*?(?:^\}|\}$)", re.MULTILINE)

EXEMPT: Final = {struct: frozenset(members.split()) for struct, members in MEMBERS.values()}
"""Published structs keep the interface of their document, whatever of it a kernel uses: these names
within them. Whatever else they have is to be used."""

STRUCT = re.compile(r"^struct (?:alignas\(\d+\) )?(\w+).*\n(?:.*\n)*?\};\n", re.MULTILINE)
DEFINED = re.compile(
    r"^ *(?:static )?(?:__host__ )?__device__ [^;{()]*?\b(?P<function>\w+)\("
    r"|^struct (?:alignas\(\d+\) )?(?P<struct>\w+)"
    r"|^using (?P<alias>\w+) ="
    r"|^ *(?:static )?constexpr [^;()]*?(?P<constants>\b\w+ = [^;]*);",
    re.MULTILINE,
)
DECLARATOR = re.compile(r"(?:^|, )(\w+) = ")


def code(text: str) -> str:
    """C++ without comments and strings."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"//[^\n]*", "", text))


def test_the_families_are_the_files_of_the_folder() -> None:
    assert len(set(FAMILIES)) == len(FAMILIES)
    assert set(FAMILIES) == {
        f"device/ptx/{path.name}" for path in (TEMPLATES / "device/ptx").iterdir()
    }


def test_each_function_that_wraps_an_instruction_is_defined_once() -> None:
    defined = defaultdict(list)
    for path in sorted(TEMPLATES.rglob("*.j2")):
        place = path.relative_to(TEMPLATES).as_posix()
        for match in BODY.finditer(path.read_text()):
            if place.startswith("device/ptx/") or "asm" in match[0]:
                defined[match[1]].append(place)
    assert len(defined) > 80
    assert {name: places for name, places in defined.items() if len(places) > 1} == {}


def test_nothing_beside_the_families_defines_a_function_of_theirs() -> None:
    theirs, others = set(), Counter[str]()
    for path in sorted(TEMPLATES.rglob("*.j2")):
        names = FUNCTION.findall(path.read_text())
        if path.parent.name == "ptx":
            theirs |= set(names)
        else:
            others.update(names)
    assert theirs & others.keys() == set()


def test_inline_assembly_is_in_the_families_alone() -> None:
    others = {
        path.relative_to(TEMPLATES).as_posix()
        for path in TEMPLATES.rglob("*.cu*.j2")
        if re.search(r"\basm\b", path.read_text()) and path.parent.name != "ptx"
    }
    # the trap where the kernel is compiled for another target
    assert others == {"device/skeleton/entry.cuh.j2", "merge/kernel.cu.j2"}


def names_defined(text: str) -> list[tuple[int, str]]:
    """The place and name of each definition."""
    found = []
    for match in DEFINED.finditer(text):
        if constants := match["constants"]:
            names = DECLARATOR.findall(constants)
        else:
            names = [match["function"] or match["struct"] or match["alias"]]
        found += [(match.start(), name) for name in names]
    return found


def unused(source: str) -> list[str]:
    """Functions, structs, aliases and constants of a kernel that nothing in it uses.

    A name that several structs define is used if it is there more often than it is defined.
    """
    text = code(source)
    words = Counter(re.findall(r"\b[A-Za-z_]\w*", text))
    defined = names_defined(text)
    times = Counter(name for _, name in defined)
    published = [(m.span(), EXEMPT[m[1]]) for m in STRUCT.finditer(text) if m[1] in EXEMPT]
    return [
        name
        for place, name in defined
        if words[name] <= times[name]
        and not any(start <= place < end and name in names for (start, end), names in published)
    ]


def text_of(source: Path) -> str:
    """A kernel with its two headers."""
    ends = ("_barriers.h", "_device.cuh", ".cu")
    return "".join(files_of(source)[end] for end in ends)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nothing_in_a_kernel_is_unused(source: Path) -> None:
    assert unused(text_of(source)) == []


@pytest.mark.parametrize(
    "source",
    {loaded(source).config.arch + source.stem[:4]: source for source in SOURCES}.values(),
    ids=lambda path: path.stem,
)
def test_what_is_put_into_a_kernel_and_not_used_is_found(source: Path) -> None:
    text = text_of(source)
    for line, name in (
        ("constexpr unsigned kSpareArrivals = 1;", "kSpareArrivals"),
        ("constexpr uint32 kSpareStep = kNumThreads;", "kSpareStep"),
        ("__device__ __forceinline__ uint32 spare(uint32 x) { return x; }", "spare"),
        ("using Spare = uint32;", "Spare"),
        ("struct Spare {\n};", "Spare"),
    ):
        places = [match.end() for match in re.finditer(r"^namespace \w+ \{\n", text, re.MULTILINE)]
        assert len(places) >= 2  # of the header and of the kernel
        for place in places:
            assert unused(f"{text[:place]}{line}\n{text[place:]}") == [name]


def test_what_is_unused_is_found() -> None:
    kernel = """\
using uint64 = unsigned long long;
using uint32 = unsigned int;

constexpr uint32 kUsed = 1, kUnused = 2;  // kUnused
struct Ring {
  static constexpr uint32 kSlots = kUsed;
  __device__ __forceinline__ uint32 never() const { return 0; }
  __device__ __forceinline__ void twice() const {}
};
struct Other {
  __device__ __forceinline__ void twice() const { Ring(); Other(); }
};
template <uint32 kSlots>
struct RolePipeline {
  __device__ __forceinline__ void acquire() const {}
  __device__ __forceinline__ void drain() const {}
};
__device__ __forceinline__ void acquire() {}
__device__ __forceinline__ void forgotten(uint32 x) { asm("forgotten %0;" :: "r"(x)); }
"""
    assert unused(kernel) == [
        "uint64", "kUnused", "never", "twice", "twice", "RolePipeline", "drain", "acquire",
        "forgotten",
    ]  # fmt: skip
