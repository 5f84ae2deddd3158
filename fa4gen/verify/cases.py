"""The problems that a kernel is verified on, by name: sizes, layouts, mask edges, hard inputs.

Cases follow the plan: lengths around its tile, blocks and window are among them. Each is small
enough for float64 on a CPU; ``large_cases`` are for a reference on the GPU.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.input_kinds import CUT_KINDS, EQUAL_HIGH, KINDS, kind_meaning
from fa4gen.verify.kinds_of_plan import left_out, takes_equal_high
from fa4gen.verify.sequences import around, batch_of, hard_sequences, small_sequences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.sequences import Lengths
    from fa4gen.verify.verdict import NamedCase

MULTIPROCESSORS = 4
"""The multiprocessors of the chip that is assumed for emulated cases: few, so that CTAs take
several tiles."""
AnyCase = TypeVar("AnyCase", bound="NamedCase")

Layout = Literal["bshd", "bhsd", "transposed", "padded", "apart", "packed"]
"""The tensors' layout in memory; see ``memory``."""
COUNTING = "counting"
"""Data of which each key shows: for cases of geometry."""
TURNS = (COUNTING, "normal")
"""Data of cases that take turns: counting or random."""
ANY_LAYOUT: tuple[Layout, ...] = ("bshd", "bhsd", "padded", "transposed")


@dataclass(frozen=True)
class Case:
    """One problem. ``softmax_scale`` None is the launcher's default."""

    name: str
    batch: int
    query_heads: int
    key_heads: int
    query_rows: int
    key_rows: int
    layout: Layout = "bshd"
    data: str = "normal"
    softmax_scale: float | None = None
    descales: tuple[str, ...] = ("query", "key", "value")
    """The tensors with scales, for a kernel for fp8."""
    far_scales: bool = False
    """Scales of pages that differ by 2^20, and some that are zero."""
    tensors: Literal["drawn", "wild", "runs", "first"] = "drawn"
    """Numbers of declared tensors: such as calls have, of any size and sign, in runs, or 1 for the
    first of the first axis and else 0."""
    raised: tuple[int, int] = (0, 0)
    """Keys, from the first to before the second, with logits raised by ``counting_raised``."""
    shared_pages: bool = False
    """Sequences begin with the same pages."""
    multiprocessors: int | None = None
    """The multiprocessors of the chip that the launcher assumes for an emulated case; None: the
    backend's."""
    group: int | None = None
    """Heads worked on together where the case is emulated; None: the launcher's choice. Where
    sequences have groups of their own, those of the sequence with the most keys."""
    far: bool = False
    """Rows, heads and batches are 2^31 elements apart where the case is emulated."""
    nan_head: bool = False
    """The first query head of the first batch is NaN: its results may be anything, those of all
    others are as without it."""
    lengths: tuple[tuple[int, int], ...] = ()
    """Query rows and keys of each sequence, for kernels that take sequences of any lengths; where
    there are none, every sequence has ``query_rows`` and ``key_rows``."""

    @property
    def sequences(self) -> tuple[tuple[int, int], ...]:
        """Query rows and keys of each sequence."""
        return self.lengths or ((self.query_rows, self.key_rows),) * self.batch

    @property
    def keys_of_group(self) -> int:
        """Keys of all heads of a group together."""
        return (self.group or 0) * max((keys for _, keys in self.sequences), default=0)

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "case", "batch", "heads q/k", "rows q/k", "layout", "data",
    )  # fmt: skip

    def row(self) -> tuple[object, ...]:
        """Return the values of COLUMNS."""
        return (
            self.name,
            self.batch,
            f"{self.query_heads}/{self.key_heads}",
            f"{self.query_rows}/{self.key_rows}" if not self.lengths else "various",
            self.layout,
            kind_meaning(self.data) if self.softmax_scale is None else "another scale",
        )

    def data_items(self) -> dict[str, Any]:
        """Return the case as JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.name}: batch {self.batch}, heads {self.query_heads}/{self.key_heads}, "
            f"rows {self.query_rows}/{self.key_rows}, {self.layout}, {self.data}"
        )
        if self.lengths:
            text += ", sequences " + " ".join(f"{rows}/{keys}" for rows, keys in self.lengths)
        return text if self.softmax_scale is None else f"{text}, scale {self.softmax_scale:g}"


def default_cases(plan: AttentionPlan) -> tuple[Case, ...]:
    """Return the cases of a kernel, in the order they run: plain ones first."""
    cases = [
        *_lengths(),
        *_tile_edges(plan),
        *_unequal_lengths(plan),
        *_empty(),
        *_heads(),
        *_layouts(),
        *_data(plan),
        *_mask_edges(plan),
        *_many_tiles(plan),
        *_descales(plan),
        *_lists(plan),
        *ragged_cases(plan, hard_sequences(plan)),
    ]
    return unique(cases)


def emulated_cases(plan: AttentionPlan) -> tuple[Case, ...]:
    """Return the cases for the emulator: the same edges as ``default_cases`` on little work.

    Around the tile and the block of keys, more blocks than the ring has slots, several tiles a CTA,
    unequal and empty lengths, grouped heads, layouts, and data that forces rescaling.
    """
    m, n = plan.tile_queries, plan.BN
    ring = plan.keys_past_ring
    several = 3 if plan.lists_blocks else 1  # lists may hide all blocks of one tile
    peaks = "peaks" if plan.score.FUNCTION else "high_peaks"
    cases = [
        Case("size/1", 1, 2, 2, 1, 1),
        Case("size/64", 1, 1, 1, 64, 64),
        Case(f"tile/{m}x{n}", 1, 1, 1, m, n, "bhsd"),
        Case(f"tile/{m + 1}x{n - 1}", 1, 1, 1, m + 1, n - 1, "padded", COUNTING),
        Case(f"tile/{m - 1}x{2 * n + 1}", 1, 1, 1, m - 1, 2 * n + 1, "transposed", COUNTING),
        Case(f"ring/{ring + 7}", 1, 1, 1, 65, ring + 7, data=COUNTING),
        Case(f"more_keys/5x{3 * n}", 1, 2, 1, 5, 3 * n, data=COUNTING),
        Case(f"more_queries/{m + 33}x17", 1, 2, 1, m + 33, 17, "padded", COUNTING),
        Case("more_queries/200x1", 1, 1, 1, 200, 1),
        Case("empty/no_queries", 2, 2, 1, 0, 100),
        Case("empty/no_keys", 2, 2, 1, m + 100, 0),
        Case("gqa/3", 1, 6, 2, 70, n + 3, data=COUNTING),
        Case("batch/5", 5, 1, 1, 33, 40, data=COUNTING),
        Case("layout/packed", 2, 2, 2, 100, 100, "packed", COUNTING),
        Case("data/rising", 1, 1, 1, 77, 3 * n, data="rising"),
        Case("data/falling", 1, 1, 1, 77, 3 * n, data="falling"),
        Case("data/peaks", 1, 1, 1, several * m, 2 * several * n, data=peaks),
        Case("data/all_logits_low", 1, 1, 1, 64, 2 * n + 7, data="all_logits_low"),
        Case("scale/1", 1, 1, 1, 100, 150, softmax_scale=1.0),
        Case("data/counting_rising", 1, 2, 1, 77, 3 * n + 5, data="counting_rising"),
        # At least three tiles per CTA, where the emulator has four CTAs.
        Case(
            "tiles/many",
            1 if plan.BM >= 256 or plan.cta_group == 2 else 2,
            6,
            3,
            m + 1,
            n + 40,
            data=COUNTING,
            nan_head=True,  # what a CTA keeps from tile to tile must not matter
        ),
        Case("tiles/square", 1, 1, 1, 2 * m + 33, 2 * m + 33),
    ]
    if plan.score.only_adds and plan.score.FUNCTION:  # others may cap logits
        cases.append(Case("data/high_peaks", 1, 1, 1, m, 2 * n, data="high_peaks"))
    if takes_equal_high(plan):
        cases.append(Case("data/equal_high", 1, 2, 1, 17, 2 * n + 7, data=EQUAL_HIGH))
    if plan.has_descales:
        cases.append(_without_descales(plan))
    if CutSums.of(plan) is not None:
        cases += [Case(f"data/{kind}", 1, 2, 1, 70, 3 * n + 7, data=kind) for kind in CUT_KINDS]
    if plan.promoted_keys is not None:  # the first promotion stores, the second adds
        whole = 2 * plan.promoted_keys
        keys = whole + n + 7
        rows = max(m + 5, keys - whole + 18)  # a diagonal crosses the second part's end
        # Three heads have more tiles than the emulator has CTAs: sums are also of a tile before.
        cases.append(Case(f"promoted/{keys}", 1, 3, 1, rows, keys, data="with_mean"))
    word, span = plan.mask.WORD, plan.mask.span
    if span is not None:
        if span <= 4 * n:
            cases += [Case(f"{word}/{span + n}", 1, 1, 1, span + n, span + n)]
        cases += [Case(f"{word}/70x{span + n + 9}", 1, 1, 1, 70, span + n + 9, data=COUNTING)]
    for rows, keys in plan.mask.small_sizes():
        cases += [Case(f"{word}/{rows}x{keys}", 1, 1, 1, rows, keys, data=COUNTING)]
    cases += [*_lists(plan)][:1]
    return unique([*cases, *ragged_cases(plan, small_sequences(plan))])


def large_cases() -> tuple[Case, ...]:
    """Return long sequences and many heads, with a reference computed on the GPU."""
    cases = [
        Case("large/4k", 2, 8, 8, 4096, 4096),
        Case("large/8k_gqa", 1, 8, 2, 8192, 8192, "bhsd"),
        Case("large/16k", 1, 4, 4, 16384, 16384),
        Case("large/odd_16k", 1, 3, 1, 16001, 16003, "padded"),
        Case("large/64k_keys", 1, 2, 1, 200, 65536),
        Case("large/64_heads", 4, 64, 8, 1024, 1024, data=COUNTING),
        Case("large/rising_and_falling_8k", 1, 2, 2, 8192, 8192, data="rising_and_falling"),
    ]
    return unique(cases)


def ragged_cases(plan: AttentionPlan, sequences: Mapping[str, Lengths]) -> Iterable[Case]:
    """Yield batches of sequences of hard lengths, by name, for kernels that take such."""
    for index, (name, lengths) in enumerate(sequences.items()):
        layout, data = ANY_LAYOUT[index % 4], TURNS[index % 2]
        yield of_sequences(plan, f"ragged/{name}", *lengths, heads=(4, 2), layout=layout, data=data)


def of_sequences(
    plan: AttentionPlan, name: str, *pairs: tuple[int, int], heads: tuple[int, int], **more: Any
) -> Case:
    """Return a case with the query rows and keys of each sequence.

    In a dense batch each has those of the longest. ``heads``: of queries and of keys.
    """
    rows, keys = (max(pair[i] for pair in pairs) for i in (0, 1))
    lengths = batch_of(plan, *pairs) if plan.has_tile_lengths else ()
    return Case(name, len(pairs), *heads, rows, keys, lengths=lengths, **more)


def _lengths() -> Iterable[Case]:
    for length in (1, 2, 8, 64, 128, 256, 512, 1024):
        yield Case(f"size/{length}", 1, 2, 2, length, length)
    for index, length in enumerate((77, 193, 333, 1000, 1111)):
        yield Case(f"odd/{length}", 1 + index % 2, 3, 1, length, length, ANY_LAYOUT[index % 4])
    yield Case("long/2500", 1, 2, 1, 2500, 2500)


def _tile_edges(plan: AttentionPlan) -> Iterable[Case]:
    """Lengths one below, at and above the tile and the block, in all combinations."""
    rows, part = around(plan.tile_queries), 64 // plan.tile_heads  # queries of a warpgroup
    keys = around(plan.BN)
    pairs = [(m, n) for m in rows for n in keys]
    pairs += [(m, m) for m in rows] + [(n, n) for n in keys]
    pairs += [
        (m, 2 * plan.BN + 1)
        for m in (*around(part), plan.tile_queries - part, 2 * plan.tile_queries)
    ]
    pairs += [(2 * plan.tile_queries + 1, 2 * n) for n in keys]
    pairs += [(2 * plan.cta_group * plan.tile_queries + 1, 3 * plan.BN)]
    pairs += [(3 * plan.tile_queries + part + 1, 3 * plan.BN - 1)]
    if plan.num_qo == 2:
        pairs += [
            (m, 2 * plan.BN + 1) for m in around(plan.tile_queries // 2)
        ]  # one query tile, or two
    for index, (m, n) in enumerate(pairs):
        if m > 0:
            layout = ANY_LAYOUT[index % len(ANY_LAYOUT)]
            data = TURNS[index // 2 % 2]  # layouts have turns of their own
            yield Case(f"tile/{m}x{n}", 1, 2, 1 + index % 2, m, n, layout, data)


def _unequal_lengths(plan: AttentionPlan) -> Iterable[Case]:
    """More keys than queries, and the reverse: with a causal mask, rows that see no key."""
    pairs = [(1, 777), (1, 2048), (1, plan.BN), (5, 3000), (77, 1000), (193, 500), (64, 640)]
    for index, (m, n) in enumerate(pairs):
        layout, data = ANY_LAYOUT[index % 4], TURNS[index % 2]
        yield Case(f"more_keys/{m}x{n}", 2, 4, 2, m, n, layout, data)
    pairs = [
        (200, 1),
        (640, 64),
        (500, 193),
        (1111, 100),
        (1000, 999),
        (2 * plan.tile_queries + 5, 17),
    ]
    pairs += [(plan.tile_queries + 1, 1), (3 * plan.tile_queries, plan.tile_queries)]
    for index, (m, n) in enumerate(pairs):
        layout, data = ANY_LAYOUT[index % 4], TURNS[index % 2]
        yield Case(f"more_queries/{m}x{n}", 2, 2, 1, m, n, layout, data)


def _empty() -> Iterable[Case]:
    yield Case("empty/no_queries", 2, 2, 1, 0, 100)
    yield Case("empty/no_keys", 2, 4, 2, 100, 0)
    yield Case("empty/no_keys_long", 1, 2, 2, 1000, 0, "bhsd")
    yield Case("empty/no_batch", 0, 2, 1, 100, 100)
    yield Case("empty/nothing", 1, 2, 2, 0, 0)


def _heads() -> Iterable[Case]:
    for ratio in (1, 2, 3, 4, 8):
        yield Case(f"gqa/{ratio}", 2, 2 * ratio, 2, 200, 300, data=TURNS[ratio % 2])
    yield Case("gqa/mqa_7", 2, 7, 1, 200, 300, data=COUNTING)
    yield Case("gqa/3_of_15", 1, 15, 3, 130, 257, "bhsd", COUNTING)
    yield Case("batch/7", 7, 2, 2, 100, 150)
    yield Case("batch/33", 33, 1, 1, 65, 65, data=COUNTING)
    yield Case("heads/1", 1, 1, 1, 300, 300)
    yield Case("heads/5", 3, 5, 5, 222, 222, data=COUNTING)
    yield Case("heads/32", 1, 32, 32, 64, 200)


def _layouts() -> Iterable[Case]:
    layouts: tuple[Layout, ...] = (*ANY_LAYOUT, "packed")
    for layout in layouts:
        yield Case(f"layout/{layout}", 2, 4, 4, 257, 257, layout)
        yield Case(f"layout/{layout}_gqa", 3, 6, 2, 100, 100, layout, COUNTING)
        yield Case(f"layout/{layout}_one_row", 2, 2, 1, 1, 1, layout)


def _data(plan: AttentionPlan) -> Iterable[Case]:
    """Every kind of data on several blocks of keys, aligned to them and not."""
    if CutSums.of(plan) is not None:
        yield Case("data/with_mean_long", 1, 2, 1, plan.BM, 64 * plan.BN + 5, data="with_mean")
    unsuited = left_out(plan)
    for index, kind in enumerate(KINDS):
        if kind not in unsuited:
            rows, keys = plan.BM + 40, 5 * plan.BN
            yield Case(f"data/{kind}", 1, 2, 2, rows, keys, data=kind)
            layout = ANY_LAYOUT[index % 4]
            yield Case(f"data/{kind}_odd", 1, 2, 1, 333, 4 * plan.BN + 7, layout, kind)
    for scale in (0.01, 0.3, 1.0):
        yield Case(f"scale/{scale:g}", 1, 3, 1, 200, 333, softmax_scale=scale)


def _mask_edges(plan: AttentionPlan) -> Iterable[Case]:
    """Lengths around the most keys that a row sees, and far beyond; then the mask's own."""
    word, width = plan.mask.WORD, plan.mask.span
    for index, (rows, keys) in enumerate(plan.mask.sizes()):
        yield Case(f"{word}/{rows}x{keys}", 1, 2, 1, rows, keys, data=TURNS[index % 2])
    if width is None:
        return
    for index, length in enumerate((*around(width), width + plan.BN, width + plan.BM + 1)):
        if 0 < length <= 3000:
            yield Case(f"{word}/{length}", 1, 2, 1, length, length, data=TURNS[index % 2])
    square = min(4 * width + 77, 2500)
    yield Case(f"{word}/long_{square}", 1, 2, 2, square, square)
    keys = min(4 * width + 77, 40_000)
    yield Case(f"{word}/300x{keys}", 1, 2, 1, 300, keys, data=COUNTING)
    yield Case(f"{word}/{keys}x300", 1, 1, 1, min(keys, 5000), 300)
    for kind in ("rising", "falling", "all_logits_low"):
        yield Case(f"{word}/{kind}", 1, 2, 1, 400, min(2 * width + 400, 5000), data=kind)


def _many_tiles(plan: AttentionPlan) -> Iterable[Case]:
    """More tiles than three waves of CTAs: the order of work, and a counter that resets."""
    many = 3 * ARCHITECTURES[plan.arch].most_multiprocessors + 4
    heads = -(-many * plan.cta_group // 4)
    rows, keys = plan.tile_queries + 1, plan.BN + 40
    yield Case("tiles/two_per_head", 2, heads, heads, rows, keys, data=COUNTING)
    heads = -(-many * plan.cta_group // 3)
    yield Case("tiles/one_per_head", 3, heads, heads, 64, 70, "bhsd")
    # More heads than the launcher puts in a group, the last group not full.
    yield Case("tiles/groups", 1, 150, 150, 200, 600, data=COUNTING)
    yield Case("tiles/long", 1, 24, 8, 4 * plan.tile_queries + 33, 4 * plan.tile_queries + 33)


def _descales(plan: AttentionPlan) -> Iterable[Case]:
    """Pass no scales, or one of them; all other cases pass all."""
    if plan.has_descales:
        yield _without_descales(plan)
        yield Case("descales/key", 1, 2, 1, 70, plan.BN + 40, descales=("key",))


def _lists(plan: AttentionPlan) -> Iterable[Case]:
    """Blocks that a tile sees as a whole, in part and not at all, next to each other."""
    m, n = plan.BM, plan.BN
    if plan.lists_blocks:
        yield Case("lists/blocks", 3, 1, 1, m + 65, 7 * n + 20, data=COUNTING)
        yield Case("lists/square", 3, 4, 2, 3 * m + 65, 3 * m + 65, "padded")
        yield Case("lists/long", 2, 3, 1, 2500, 2500, "bhsd")
        yield Case("lists/more_queries", 2, 2, 2, 3 * m, 4 * n + 1, data="rising_and_falling")


def _without_descales(plan: AttentionPlan) -> Case:
    return Case("descales/none", 1, 2, 1, 70, plan.BN + 40, descales=())


def unique(cases: Iterable[AnyCase]) -> tuple[AnyCase, ...]:
    """Leave out problems that are present under another name, and make every name unique."""
    by_problem: dict[Any, AnyCase] = {}
    names: set[str] = set()
    for case in cases:
        problem = replace(case, name="")  # type: ignore[type-var]
        if problem not in by_problem:
            name, number = case.name, 2
            while name in names:
                name, number = f"{case.name}_{number}", number + 1
            names.add(name)
            by_problem[problem] = replace(case, name=name)  # type: ignore[type-var]
    return tuple(by_problem.values())
