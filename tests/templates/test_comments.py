"""Every count in a comment of a generated kernel is that of a constant of its header or its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from fa4gen.config.find import shipped_configs
from fa4gen.render.environment import camel
from tests.shipped import files_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCES: Final = shipped_configs()
WITH_LOADERS: Final = [path for path in SOURCES if "merge" not in path.parts]

FILES: Final = (".cu", "_barriers.h", "_device.cuh")
CONSTANT = re.compile(r"constexpr (?:unsigned|u?int32) (k\w+|num_kv_stages) = (\d+);")
TABLE: Final = re.compile(r"^//   (\w+) +(\d+) x +(\d+)  ", re.MULTILINE)
BARRIERS: Final = re.compile(r"^// (\d+) barriers of eight bytes\.$", re.MULTILINE)
ROW = re.compile(
    r"^constexpr unsigned (k\w+) = (\d+);\n(?:constexpr unsigned \1Slots = (\d+);\n)?"
    r"constexpr unsigned \1Arrivals = \d+;$",
    re.MULTILINE,
)
COUNT = re.compile(
    r"\b(?P<count>\d[\d *x]*|one|two|three|four)(?P<pair> \* cta_group)?"
    r" (?P<of>(?:consumer )?warpgroups?|stages?|slots?|accumulators?|arrivals?|threads|warps)\b"
)
CTA_GROUP: Final = re.compile(r"constexpr int32 (?:kCtaGroup|cta_group) = (\d);")
WORDS: Final = {"one": "1", "two": "2", "three": "3", "four": "4"}
MAY_BE: Final = {
    "consumer warpgroup": ("kNumConsumerWarpgroups",),
    "stage": ("kNumStages", "kNumKvStages", "num_kv_stages"),
    "slot": (
        "kNumKvStages",
        "num_kv_stages",
        "kNumEpiStages",
        "kNumOutStages",
        "kNumTileSlots",
        "kNumScaleStages",
    ),
    "accumulator": ("kNumAccumStages",),
    "thread": ("kNumThreads", "kListThreads"),
}
"""The constants that a count of these may be; others are checked by their own tests."""
PUBLISHED: Final = re.compile(
    r"((?:^//[^\n]*\n)+)(?:template [^\n]*\n(?: +[^\n]*\n)*)?struct (\w+)", re.MULTILINE
)
"""A struct and the comment above it."""
END: Final = re.compile(r"^//   (full|empty): +(.*(?:\n//          .*)*)", re.MULTILINE)
MBARS: Final = re.compile(r"^//   ([A-Z]\w*) +(\d+)  ", re.MULTILINE)
"""A row of the comment of Depth512MBars: name and arrivals."""


def constants(source: Path) -> dict[str, int]:
    """Return the plain numbers among the constants of the kernel and of its headers."""
    text = "".join(files_of(source)[end] for end in FILES)
    return {name: int(value) for name, value in CONSTANT.findall(text)}


def wrong_counts(comment: str, known: dict[str, int]) -> list[str]:
    """Counts of the heading of a kernel that no constant of that meaning has."""
    wrong = []
    for match in COUNT.finditer(comment):
        of = match["of"].removesuffix("s")
        count = int(WORDS.get(match["count"], match["count"]))
        values = {known[name] for name in MAY_BE.get(of, ()) if name in known}
        if values and count not in values:
            wrong.append(f"{match[0]}: {of} is {sorted(values)}")
    return wrong


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_counts_in_comments_are_those_of_the_header(source: Path) -> None:
    text, known = files_of(source)[".cu"], constants(source)

    table = {name: (int(slots), int(arrivals)) for name, slots, arrivals in TABLE.findall(text)}
    of_header = {
        (row := name.removesuffix("Arrivals")): (known.get(f"{row}Slots", 1), arrivals)
        for name, arrivals in known.items()
        if name.endswith("Arrivals")
    }
    assert {camel(name): counts for name, counts in table.items()} == of_header

    heading = text[: text.index("#include")]
    summary = heading[: heading.index("// Roles:")]
    assert wrong_counts(summary, known) == []
    launch = text[text.index("// Launch with") : text.index('extern "C"')]
    assert wrong_counts(launch, known) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_barriers_fill_the_place_that_their_header_states(source: Path) -> None:
    header = files_of(source)["_barriers.h"]
    rows = [(int(offset), int(slots or 1)) for _, offset, slots in ROW.findall(header)]
    assert len(rows) == header.count("Arrivals = ")
    assert [int(count) for count in BARRIERS.findall(header)] == [sum(slots for _, slots in rows)]
    ends = [offset + 8 * slots for offset, slots in rows]
    assert ends[:-1] == [offset for offset, _ in rows[1:]]


def stated_arrivals(text: str) -> dict[tuple[str, str], int]:
    """Return the arrivals in comments of structs, by struct and end, "full" or "empty"."""
    group = CTA_GROUP.search(text)
    pair = int(group[1]) if group else 1
    return {
        (struct, end[1]): int(WORDS.get(match["count"], match["count"]))
        * (pair if match["pair"] else 1)
        for comment, struct in PUBLISHED.findall(text)
        for end in END.finditer(comment)
        for match in COUNT.finditer(end[2])
        if match["of"].startswith("arrival")
    }


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_arrivals_in_comments_of_structs_are_those_of_the_header(source: Path) -> None:
    device = files_of(source)["_device.cuh"]
    text, known = files_of(source)[".cu"] + device, constants(source)
    stated = stated_arrivals(text)
    expected: dict[tuple[str, str], int] = {}
    if "struct StagedPipeline" in text:  # commits and load warps, in every kernel that has it
        rings = [row for row in ("Key", "Value", "Kv") if f"k{row}FullArrivals" in known]
        counts = {known[f"k{row}{end}Arrivals"] for row in rings for end in ("Full", "Empty")}
        if "struct Depth512MBars" in text:
            counts = {known["kKvProducerArrivals"], known["kKvConsumerArrivals"]}
        [count] = counts
        expected |= {("StagedPipeline", "full"): count, ("StagedPipeline", "empty"): count}
    if "struct OutputRingBuffer" in text:
        expected |= {
            ("OutputRingBuffer", "full"): known["kAccumFullArrivals"],
            ("OutputRingBuffer", "empty"): known["kAccumEmptyArrivals"],
        }
    assert stated == expected

    body = text[text.index("#include") :]
    comments = "\n".join(re.findall(r"//[^\n]*", body))
    counted = sum(match["of"].startswith("arrival") for match in COUNT.finditer(comments))
    assert counted == len(expected)  # no other comment counts arrivals

    rows = next((c for c, struct in PUBLISHED.findall(text) if struct == "Depth512MBars"), "")
    listed = {name: int(arrivals) for name, arrivals in MBARS.findall(rows)}
    assert len(listed) == (11 if "struct Depth512MBars" in text else 0)
    for name, arrivals in listed.items():
        row = camel("kv_producer" if name == "KV" else name.lower())
        assert arrivals == known[f"{row}Arrivals"], name


def test_wrong_counts_are_found() -> None:
    known = {"kNumKvStages": 5, "kNumConsumerWarpgroups": 2}
    assert wrong_counts("// a ring of 5 slots, 2 consumer warpgroups", known) == []
    assert wrong_counts("// two stages, 3 consumer warpgroups", known) == [
        "two stages: stage is [5]",
        "3 consumer warpgroups: consumer warpgroup is [2]",
    ]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_kernels_with_one_query_tile_do_not_speak_of_two(source: Path) -> None:
    text = "".join(files_of(source)[end] for end in FILES)
    if re.search(r"constexpr int32 kNumQo = 1;", text):
        comments = " ".join(re.findall(r"//([^\n]*)", text))
        assert not re.search(r"\b(?:both|two|second|other) (?:query )?tiles?\b", comments)


LOADER: Final = re.compile(r"^// ---- role: load\. One (thread|warp)\b", re.MULTILINE)
LOADER_ROW: Final = re.compile(r"^//   load .*?: one (thread|warp)\b", re.MULTILINE)


def who_loads(text: str) -> str:
    """Whether one thread or a warp runs the loader: by the condition of its call."""
    call = text.rindex("run_loader(")
    condition = text[text.rindex("if (", 0, call) : call]
    one = re.search(r"elect_one\(\)|threadIdx\.x (?:% 32 )?== (?:0|kConsumerThreads)\b", condition)
    return "thread" if one else "warp"


@pytest.mark.parametrize("source", WITH_LOADERS, ids=lambda path: path.stem)
def test_table_and_role_say_who_loads(source: Path) -> None:
    text = files_of(source)[".cu"]
    who = who_loads(text)
    assert LOADER.findall(text) == [who]
    assert LOADER_ROW.findall(text) in ([who], [])


NAMED: Final = re.compile(
    r"\bAs (\w*_\w+)|`(\w+)`|\b(\w+)\(\)|\b([a-z]+_[a-z0-9_]+)\b(?!\.\w)|\b(k[A-Z]\w+)"
)
"""The things that a comment may name: functions, variables, constants, rows of the table of
barriers."""


def unknown_names(text: str) -> list[str]:
    """Names in the comments of a kernel's files that its code does not have."""
    words = frozenset(re.findall(r"\w+", re.sub(r"//.*", "", text)))
    code = words | {re.sub(r"(?<=[a-z])\d", "", word) for word in words}  # of two: epi0, epi1
    text = re.sub(r"//   fa4gen render [\w/.]+", "", text)  # a config's name
    names = (
        next(filter(None, match.groups()))
        for comment in re.findall(r"//(.*)", text)
        for match in NAMED.finditer(comment)
    )
    return [name for name in names if name not in code and camel(name) not in code]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_comments_name_what_the_kernel_has(source: Path) -> None:
    text = "".join(files_of(source)[end] for end in FILES)
    assert unknown_names(text) == []
    assert unknown_names(text + "// As wait_for_nothing, of kNothing, `nobody` and nothing().") == [
        "wait_for_nothing", "kNothing", "nobody", "nothing",
    ]  # fmt: skip
    headings = re.findall(r"^ *// ---- .*", text, re.MULTILINE)
    assert [heading for heading in headings if not heading.endswith(" ----")] == []
    registers = {int(count) for count in re.findall(r"Registers = (\d+);", text)}
    assert {int(n) for n in re.findall(r"//.*?(\d+) registers", text)} <= registers
