"""Each instruction is defined once, and kernels have nothing that they do not use."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

import pytest

from fa4gen.render.instructions import FAMILIES
from fa4gen.resources import data_root

TEMPLATES: Final = data_root("templates")
SOURCES: Final = sorted((Path(__file__).parents[2] / "generated").glob("sm_*/*/*.cu"))

FUNCTION = re.compile(r"^(?:__host__ )?__device__ .*?\b(\w+)\(", re.MULTILINE)
BODY = re.compile(r"^(?:__host__ )?__device__ .*?\b(\w+)\((?:.|\n)*?(?:^\}|\}$)", re.MULTILINE)

PUBLISHED: Final = {
    "FA4Config", "StagedPipeline", "TMAConsumerPipeline", "TMAProducerPipeline", "RolePipeline",
    "OutputRingBuffer", "OutputStage", "ProducerConsumerPipeline", "ProduceContext",
    "ConsumeContext", "ExplicitConsumeContext", "EpiLoadPipeline", "Depth512MBars",
}  # fmt: skip
"""Structs that keep their whole documented interface, whatever of it a kernel uses."""

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
    assert set(FAMILIES) == {f"ptx/{path.name}" for path in (TEMPLATES / "ptx").iterdir()}


def test_each_function_that_wraps_an_instruction_is_defined_once() -> None:
    defined = defaultdict(list)
    for path in sorted(TEMPLATES.rglob("*.j2")):
        place = path.relative_to(TEMPLATES).as_posix()
        for match in BODY.finditer(path.read_text()):
            if place.startswith("ptx/") or "asm" in match[0]:
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


def unused(source: str) -> list[str]:
    """Functions, structs, aliases and constants of a kernel that nothing in it uses."""
    text = code(source)
    words = Counter(re.findall(r"\b[A-Za-z_]\w*", text))
    own = STRUCT.sub(lambda match: "" if match[1] in PUBLISHED else match[0], text)
    names = []
    for match in DEFINED.finditer(own):
        if match["constants"]:
            names += DECLARATOR.findall(match["constants"])
        else:
            names.append(match["function"] or match["struct"] or match["alias"])
    return [name for name in names if words[name] == 1]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nothing_in_a_kernel_is_unused(source: Path) -> None:
    device = source.with_name(f"{source.stem}_device.cuh")
    assert unused(source.read_text() + device.read_text()) == []


def test_what_is_unused_is_found() -> None:
    kernel = """\
using uint64 = unsigned long long;
using uint32 = unsigned int;

constexpr uint32 kUsed = 1, kUnused = 2;  // kUnused
struct Ring {
  static constexpr uint32 kSlots = kUsed;
  __device__ __forceinline__ uint32 never() const { return 0; }
};
template <uint32 kSlots>
struct RolePipeline {
  __device__ __forceinline__ void drain() const {}
};
__device__ __forceinline__ void forgotten(uint32 x) { asm("forgotten %0;" :: "r"(x)); }
"""
    assert unused(kernel) == ["uint64", "kUnused", "Ring", "never", "forgotten"]
