"""The contents of a device header: the instructions and rings that a kernel's text uses, no others.

The templates of ``templates/device/ptx`` are families of instructions, each function defined once.
A family is a heading, then definitions with their comments, set apart by blank lines: functions,
structs, and declarations of a line, ``using`` or ``constexpr``. A ring is the whole of its file:
its structs keep their documented interface. Nothing has to be marked in either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FAMILIES = (
    "device/ptx/types.cuh.j2",
    "device/ptx/mbarrier.cuh.j2",
    "device/ptx/mbarrier_cluster.cuh.j2",
    "device/ptx/named_barrier.cuh.j2",
    "device/ptx/cluster.cuh.j2",
    "device/ptx/pair.cuh.j2",
    "device/ptx/fence.cuh.j2",
    "device/ptx/shared.cuh.j2",
    "device/ptx/global.cuh.j2",
    "device/ptx/prefetch.cuh.j2",
    "device/ptx/dependent_launch.cuh.j2",
    "device/ptx/tma.cuh.j2",
    "device/ptx/clusterlaunchcontrol.cuh.j2",
    "device/ptx/mma.cuh.j2",
    "device/ptx/wgmma.cuh.j2",
    "device/ptx/tcgen05.cuh.j2",
    "device/ptx/tcgen05_scaled.cuh.j2",
    "device/ptx/warp.cuh.j2",
    "device/ptx/math.cuh.j2",
    "device/ptx/packed.cuh.j2",
    "device/ptx/convert.cuh.j2",
)
"""The families in the order in which kernels have them: a function comes after those that it
calls."""
OF_TENSORS = frozenset(
    f"device/ptx/{name}.cuh.j2"
    for name in ("tma", "mma", "wgmma", "tcgen05", "tcgen05_scaled", "clusterlaunchcontrol")
)
"""Those that ask for the operands of tensor cores: none of a kernel without tensor maps."""
RINGS = (
    "device/rings/ring.cuh.j2",
    "device/rings/ring_position.cuh.j2",
    "device/rings/row_ring.cuh.j2",
    "device/rings/producer_consumer_pipeline.cuh.j2",
    "device/rings/staged_pipeline.cuh.j2",
    "device/rings/role_pipeline.cuh.j2",
    "device/rings/tma_producer_pipeline.cuh.j2",
    "device/rings/tma_consumer_pipeline.cuh.j2",
    "device/rings/epi_load_pipeline.cuh.j2",
    "device/rings/output_ring_buffer.cuh.j2",
    "device/rings/depth512_mbars.cuh.j2",
)
"""The rings after them, in this order; a kernel has a file completely or not at all."""
PLACEHOLDER = "\x03"
"""The output of ``{{ instructions }}`` until instructions and rings are put in its place."""
NOTHING = "// The kernel uses none of them."

_COMMENT = re.compile(r"//[^\n]*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINITION = re.compile(
    r"^(?:__host__ )?__device__ .*?\b(?P<function>\w+)\("
    r"|^struct (?:alignas\(\d+\) )?(?P<struct>\w+)"
)
_DECLARATION = re.compile(r"^(?:using|constexpr [\w:]+) (\w+) = [^{]*;(?: *//.*)?$")


@dataclass(frozen=True)
class Definition:
    """Lines of a family (from 0) in a paragraph of it: what they define, and the words they use.

    Without names it is a comment alone: a heading.
    """

    paragraph: int
    lines: range
    names: frozenset[str]
    words: frozenset[str] = frozenset()


Kept = dict[str, list[list[int]]]
"""Paragraphs to keep of each family from which something is called, as line numbers."""


def code_words(text: str) -> frozenset[str]:
    """Return the identifiers in C++ code, outside of comments and strings."""
    return frozenset(_WORD.findall(_STRING.sub('""', _COMMENT.sub("", text))))


def definitions(lines: Sequence[str]) -> list[Definition]:
    """Return the definitions in a rendered family.

    Declarations of a line are on their own although no blank line sets them apart.
    """
    found: list[Definition] = []
    for number, paragraph in enumerate(_paragraphs(lines)):
        names = {i: name for i in paragraph if (name := _defined(lines[i]))}
        every = frozenset(names.values())
        if len(names) > 1 and all(_DECLARATION.match(lines[i]) for i in names):
            comment = range(paragraph.start, min(names))  # stays while one of them does
            found.append(Definition(number, comment, every))
            for i, name in names.items():
                words = code_words(lines[i])
                found.append(Definition(number, range(i, i + 1), frozenset({name}), words))
        else:
            words = code_words("\n".join(lines[i] for i in paragraph))
            found.append(Definition(number, paragraph, every, words))
    return found


def whole(lines: Sequence[str]) -> list[Definition]:
    """Return a rendered ring as one definition, of all structs in it."""
    used = range(max((i + 1 for i, line in enumerate(lines) if line.strip()), default=0))
    names = frozenset(name for line in lines if (name := _defined(line)))
    return [Definition(0, used, names, code_words("\n".join(lines)))]


def called(families: Mapping[str, Sequence[str]], words: Iterable[str]) -> Kept:
    """Return the lines of ``families`` to keep where the kernel's code has ``words``.

    Definitions that a kept one uses are kept as well, and the heading of its family.
    """
    found = {
        name: whole(lines) if name in RINGS else definitions(lines)
        for name, lines in families.items()
    }
    used = set(words)
    while more := {
        word
        for family in found.values()
        for definition in family
        if definition.names & used
        for word in definition.words - used
    }:
        used |= more
    kept: Kept = {}
    for name, family in found.items():
        if not any(definition.names & used for definition in family):
            continue
        paragraphs: dict[int, list[int]] = {}
        for definition in family:
            if not definition.names or definition.names & used:
                paragraphs.setdefault(definition.paragraph, []).extend(definition.lines)
        kept[name] = list(paragraphs.values())
    return kept


def put_in(text: str, families: Mapping[str, Sequence[str]], kept: Kept) -> str:
    """Return ``text`` with the kept lines in the place of its placeholder, a blank line between."""
    paragraphs = [
        "\n".join(families[name][i] for i in paragraph)
        for name, paragraphs in kept.items()
        for paragraph in paragraphs
    ]
    return text.replace(PLACEHOLDER, "\n\n".join(paragraphs) or NOTHING, 1)


def _paragraphs(lines: Sequence[str]) -> Iterator[range]:
    start: int | None = None
    for i, line in enumerate([*lines, ""]):
        if line.strip():
            start = i if start is None else start
        elif start is not None:
            yield range(start, i)
            start = None


def _defined(line: str) -> str:
    if match := _DEFINITION.match(line):
        return match["function"] or match["struct"]
    match = _DECLARATION.match(line)
    return match[1] if match else ""
