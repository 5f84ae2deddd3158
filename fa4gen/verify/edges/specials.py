"""Edges of attention that one case reaches each: strides, groups, sequences, declared tensors."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.verify.cases import COUNTING, Case, of_sequences
from fa4gen.verify.edges.edge import ODD_STRIDES, WHY_ODD_STRIDES, Special
from fa4gen.verify.input_kinds import LEAST_RISE, RAISED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.decode_model import SharedKeysPlan

MOST_UNSEEN: Final = 600
"""Rows before the first key that may be tried for one that a tile of them does not see."""
FIRST_BUCKET: Final = 7
"""Blocks of keys of the sequences in the first of the eight buckets of a lane that lists tiles."""
NUM_BUCKETS: Final = 256
"""Buckets of the kernel that lists tiles: kNumBuckets in its template."""
WILD_HEADS: Final = 6
"""The number of heads: that of wild numbers in ``inputs``."""


def specials(plan: AttentionPlan) -> Iterator[Special[AttentionPlan, Case]]:
    """Yield those of a plan."""
    return (one for one in SPECIALS if one.concerns(plan))


def _apart(plan: AttentionPlan) -> Case:
    return _case(plan, "strides/apart", (5, plan.BN + 6), (3, 20), layout="apart")


def _far(plan: AttentionPlan) -> Case:
    """Return three sequences: the third one's pages are 2^31 entries into the table."""
    return _case(plan, "strides/far", (5, 70), (2, 9), (3, 20), far=True)


def _far_unseen(plan: AttentionPlan) -> Case:
    """Return a tile of rows that see no key: before the first one, or there is none."""
    some = range(plan.cluster_queries + 7, 2 * plan.cluster_queries + MOST_UNSEEN)
    rows = next((rows for rows in some if _sees_nothing(plan, rows, 5)), None)
    rows, keys = (70, 0) if rows is None else (rows, 5)
    return _case(plan, "strides/far_unseen", (rows, keys), (3, keys), far=True)


def _has_far_unseen(plan: AttentionPlan, case: Case) -> bool:
    return case.far and any(
        rows and (not keys or _sees_nothing(plan, rows, keys)) for rows, keys in case.sequences
    )


def _sees_nothing(plan: AttentionPlan, rows: int, keys: int) -> bool:
    """Return whether the first tiles of a head, those of a cluster, see no key."""
    last = plan.cluster_queries - 1
    return plan.mask.has_right_end and last < rows and plan.mask.last(last + keys - rows) < 0


def _case(
    plan: AttentionPlan, name: str, *pairs: tuple[int, int], heads: int = 2, **more: Any
) -> Case:
    """Return a case with these query rows and keys, and some key heads."""
    more = {"data": COUNTING, **more}
    return of_sequences(plan, name, *pairs, heads=(heads * plan.tile_heads, heads), **more)


def _group(plan: AttentionPlan) -> Case:
    """Return three heads in groups of two, or their multiple where tiles have several.

    Where sequences have groups of their own, five heads: a first group, an inner one and a last one
    that is not full; in the second sequence two groups, and one in the third.
    """
    rows = plan.tile_queries + 1
    if plan.is_ragged:
        return _case(plan, "groups/heads", (rows, 20), (3, 13), (3, 5), heads=5, group=2)
    return Case("groups/heads", 1, 3 * plan.tile_heads, 3, rows, 20, data=COUNTING, group=2)


def _has_groups(plan: AttentionPlan, case: Case) -> bool:
    if plan.is_ragged:
        together = plan.group_keys if case.group is None else case.keys_of_group
        sizes = {max(1, together // keys) for rows, keys in case.sequences if rows and keys}
        return any(2 * size < case.key_heads and case.key_heads % size for size in sizes)
    heads = case.batch * case.query_heads // plan.tile_heads
    return case.group is not None and case.group < heads and heads % case.group > 0


def _many_sequences(plan: AttentionPlan) -> Case:
    """Return more sequences than threads; few have rows, in the first round and after it."""
    assert plan.tile_list is not None
    threads = plan.tile_list.threads
    some = {threads - 1: (3, 2), threads: (1, 5), threads + 33: (2, 4)}
    pairs = [some.get(i, (0, i % 2)) for i in range(threads + 40)]
    return _case(plan, "ragged/more_than_threads", *pairs, heads=1)


def _has_many_sequences(plan: AttentionPlan, case: Case) -> bool:
    listing = plan.tile_list
    return listing is not None and len(case.sequences) > listing.threads


def _first_of_a_lane(plan: AttentionPlan) -> Case:
    """Return two sequences in the first of a lane's buckets, and one in a bucket before it."""
    n = FIRST_BUCKET * plan.BN
    return _case(plan, "ragged/buckets", (1, n - 3), (1, n + plan.BN), (1, n), heads=1)


def _has_first_of_a_lane(plan: AttentionPlan, case: Case) -> bool:
    work = [_work(plan, *pair) for pair in case.sequences]
    return work.count(FIRST_BUCKET) > 1 and max(work) > FIRST_BUCKET


def _no_first_of_a_lane(plan: AttentionPlan) -> str:
    case = _first_of_a_lane(plan)
    return "" if _has_first_of_a_lane(plan, case) else f"no row sees {FIRST_BUCKET + 1} blocks"


def _past_the_buckets(plan: AttentionPlan) -> Case:
    """Return a sequence whose row sees more blocks than there are buckets."""
    return _case(plan, "ragged/most_work", (1, NUM_BUCKETS * plan.BN + 5), (1, plan.BN), heads=1)


def _is_past_the_buckets(plan: AttentionPlan, case: Case) -> bool:
    return max((_work(plan, *pair) for pair in case.sequences), default=0) > NUM_BUCKETS


def _never_past_the_buckets(plan: AttentionPlan) -> str:
    case = _past_the_buckets(plan)
    return "" if _is_past_the_buckets(plan, case) else f"no row sees {NUM_BUCKETS + 1} blocks"


def _work(plan: AttentionPlan, rows: int, keys: int) -> int:
    """Return the blocks of keys that the last tiles of a sequence see."""
    if not rows:
        return 0
    mask, last = plan.mask, keys - 1
    first = keys - rows + (rows - 1) // plan.cluster_queries * plan.cluster_queries
    begin = 0 if not mask.has_left_end else max(0, mask.first(first))
    end = keys if not mask.has_right_end else min(keys, mask.last(last) + 1)
    return max(0, -(-end // plan.BN) - begin // plan.BN)


def _wild(plan: AttentionPlan) -> Case:
    """Return several tiles for one CTA: of two batches, and of a head for each wild number."""
    axes = {axis for tensor in plan.declared_tensors for axis in tensor.shape}
    heads = WILD_HEADS if "query_heads" in axes else 1
    rows = 3 if plan.splits_keys else 70 if heads > 1 else 2 * plan.tile_queries + 1
    pairs = ((rows, 5 * plan.BN + 9),) * (1 + ("batch" in axes))
    data = "dominant_first" if heads > 1 else COUNTING  # one key counts however far it is
    more = {"tensors": "wild", "data": data, "multiprocessors": plan.launch.cluster}
    return _case(plan, "tensors/wild", *pairs, heads=heads, **more)


def _growing(plan: AttentionPlan) -> Case:
    """Return rows of which the first ones see the first key, which has most weight; others do not.

    Blocks are walked from the last to the first, so that the maxima grow in the last one walked.
    """
    rows = plan.part_rows // plan.tile_heads - 1
    keys = next(keys for keys in count(rows) if plan.mask.first(keys - 1) > 0) + 4
    return _case(plan, "edges/growing", (rows, keys), heads=1, data="dominant_first")


def _grows(plan: AttentionPlan, case: Case) -> bool:
    return case.data == "dominant_first" and any(
        0 < rows <= keys and plan.mask.first(keys - rows) <= 0 < plan.mask.first(keys - 1)
        for rows, keys in case.sequences
    )


def _raised(plan: AttentionPlan) -> Case:
    """Return a case whose last walked keys are raised above the others by no power of two.

    CTAs that share keys walk them from the first to the last: the last one is raised, alone in its
    unit, in a part that had a unit before, in the second piece of a tile. Others walk blocks from
    the last to the first.
    """
    if not plan.splits_keys:
        more = {"data": RAISED, "raised": (0, plan.BN)}
        return _case(plan, "edges/raised", (5, plan.BN + 9), heads=1, **more)
    shared = cast("SharedKeysPlan", plan)
    before = 2 * plan.BN + shared.unit_keys
    if shared.split_blocks:
        before = (shared.split_blocks + 1) * plan.BN
    case = of_sequences(plan, "edges/raised", (1, before + 1), heads=(8, 1), data=RAISED)
    chip = 2 * plan.ctas_per_tile
    return replace(case, raised=(before, before + 1), multiprocessors=chip)


def _can_raise(plan: AttentionPlan) -> bool:
    """Return whether logits are weighed, sums follow maxima, and rows may see two blocks."""
    plain = not plan.score.IS_EXPRESSION and not plan.score.FUNCTION
    follows = plan.rescale_threshold < LEAST_RISE
    return plain and follows and (plan.mask.span is None or plan.mask.span > plan.BN + 9)


def _ends_alone(plan: AttentionPlan, rows: int, keys: int) -> bool:
    """Return whether the last part's rows have no end of the mask in the block the keys end in."""
    mask, step = plan.mask, plan.part_rows // plan.tile_heads
    first = keys - rows + (rows - 1) // step * step
    positions, begin = range(first, first + step), (keys - 1) // plan.BN * plan.BN
    block = range(begin, begin + plan.BN)
    return (
        keys % plan.BN > 0
        and not (mask.has_right_end and mask.last(positions[0]) < block[-1])
        and not (mask.has_left_end and mask.first(positions[-1]) > begin)
        and mask.sees_all(positions, block)
    )


def _whole_but_for_the_end(plan: AttentionPlan) -> tuple[int, int] | None:
    """Return the fewest keys with as few rows whose last block only the keys' end cuts."""
    if plan.mask.ENDS_AT_QUERY:
        return None
    step = plan.part_rows // plan.tile_heads
    some = ((rows, keys) for keys in range(1, 2 * plan.BN) for rows in range(1, step + 1))
    return next((pair for pair in some if _ends_alone(plan, *pair)), None)


def _ending(plan: AttentionPlan) -> Case:
    pair = _whole_but_for_the_end(plan)
    assert pair is not None
    return _case(plan, "edges/only_keys_end", pair, heads=1)


def _has_documents(plan: AttentionPlan) -> bool:
    along = {tensor.shape[-1] for tensor in plan.declared_tensors if tensor.dtype == "int32"}
    return plan.lists_blocks and bool(along & {"rows", "keys"})


def _left_out(plan: AttentionPlan) -> Case:
    """Return the fewest rows of which one CTA takes a full tile, then one with a part left out."""
    case = Case("edges/left_out", 1, plan.tile_heads, 1, 1, plan.BN + 9, data=COUNTING)
    case = replace(case, multiprocessors=plan.launch.cluster)
    made = (replace(case, query_rows=rows) for rows in count(1))
    return next(case for case in made if _leaves_out(plan, case))


def _leaves_out(plan: AttentionPlan, case: Case) -> bool:
    """Return whether a CTA takes all tiles, the full ones first, and some are not full."""
    if case.multiprocessors != plan.launch.cluster:
        return False
    group = case.query_heads // case.key_heads
    size = ProblemSize(case.batch, case.query_heads, group, case.query_rows, case.key_rows)
    schedule = plan_schedule(plan, size, case.multiprocessors)
    return 0 < schedule.num_short_tiles < schedule.tiles_per_head


def _unseen_last(plan: AttentionPlan) -> Case:
    """Return a tile with keys, and then one with as many rows and without."""
    rows = plan.part_rows // plan.tile_heads + 6
    more = {"heads": 1, "multiprocessors": plan.launch.cluster}
    return _case(plan, "edges/unseen_last", (rows, plan.BN + 9), (rows, 0), **more)


def _has_unseen_last(plan: AttentionPlan, case: Case) -> bool:
    """Return whether a CTA takes all tiles, and has one without keys after one with keys.

    In a list of tiles those without keys are the last ones.
    """
    if case.multiprocessors != plan.launch.cluster:
        return False
    rows = plan.part_rows // plan.tile_heads
    seen = [keys > 0 for queries, keys in case.sequences if queries >= rows]
    return True in seen and False in seen and (plan.is_ragged or not seen[-1])


def _runs(plan: AttentionPlan) -> Case:
    """Return as many queries and keys as the runs of ``inputs`` are made for."""
    return _case(plan, "tensors/runs", (256, 640), (256, 640), heads=1, tensors="runs")


SPECIALS: Final[tuple[Special[AttentionPlan, Case], ...]] = (
    Special(
        "strides that no other tensor and axis has",
        "a tensor is read or written with the strides of another, or with those of another axis",
        lambda _: True,
        lambda _, case: case.layout == "apart" and min(case.batch, case.key_heads) > 1,
        _apart,
    ),
    Special(
        ODD_STRIDES,
        WHY_ODD_STRIDES,
        lambda _: True,
        lambda _, case: case.layout == "padded" and case.key_heads == 1 and case.batch > 0,
        lambda plan: _case(plan, "strides/odd", (5, 20), heads=1, layout="padded"),
    ),
    Special(
        "strides of 2^31 elements",
        "an offset is computed in 32 bits",
        lambda _: True,
        lambda _, case: case.far and case.batch > 2 and case.key_heads > 1,
        _far,
    ),
    Special(
        "a tile without keys at strides of 2^31 elements",
        "the offset of zeros is computed in 32 bits",
        lambda _: True,
        _has_far_unseen,
        _far_unseen,
    ),
    Special(
        "a tile that leaves a part out, after one that does not",
        "the part left out does not release the blocks of keys, or writes rows of others",
        lambda plan: plan.mixed_tile_heights and not plan.is_ragged,
        _leaves_out,
        _left_out,
    ),
    Special(
        "a tile without keys, after one with keys",
        "rows are written, or blocks released, as those of the tile before",
        lambda plan: plan.has_tile_lengths and not plan.splits_keys,
        _has_unseen_last,
        _unseen_last,
    ),
    Special(
        "several groups of heads, the last not full",
        "heads past the last full group are left out, or others are computed twice",
        lambda plan: (plan.longest_first or plan.is_ragged) and not plan.takes_blocks,
        _has_groups,
        _group,
    ),
    Special(
        "more sequences than threads list",
        "the launch that lists tiles leaves out the sequences of a thread's second round",
        lambda plan: plan.tile_list is not None and not plan.takes_blocks,
        _has_many_sequences,
        _many_sequences,
    ),
    Special(
        "sequences in the first of a lane's buckets",
        "tiles are listed over each other, since the place of a lane's first bucket is not set",
        lambda plan: plan.tile_list is not None and not plan.takes_blocks,
        _has_first_of_a_lane,
        _first_of_a_lane,
        _no_first_of_a_lane,
    ),
    Special(
        "a sequence with more blocks of keys than there are buckets",
        "its bucket is computed as that of a shorter one, and is before the first",
        lambda plan: plan.tile_list is not None and not plan.takes_blocks,
        _is_past_the_buckets,
        _past_the_buckets,
        _never_past_the_buckets,
    ),
    Special(
        "maxima that grow in a block masked at the left",
        "sums and output are not rescaled there, or by what masked scores say",
        lambda plan: plan.mask.has_left_end and plan.mask.span is not None,
        _grows,
        _growing,
    ),
    Special(
        "keys that end in a block without an end of the mask",
        "the block is not masked, for no row of the part has an end of the mask there",
        lambda plan: plan.mask.has_right_end and not plan.splits_keys and not plan.lists_blocks,
        lambda plan, case: any(
            rows and keys and _ends_alone(plan, rows, keys) for rows, keys in case.sequences
        ),
        _ending,
        lambda plan: "" if _whole_but_for_the_end(plan) else "the mask ends in each such block",
    ),
    Special(
        "sums scaled by no power of two",
        "the factor of older sums, of another part's or of another piece's is rounded",
        _can_raise,
        lambda _, case: case.data == RAISED,
        _raised,
    ),
    Special(
        "declared tensors with numbers of any size and sign",
        "documents in order, slopes of one sign and bits in few places hide what is not read",
        lambda plan: bool(plan.declared_tensors),
        lambda _, case: case.tensors == "wild",
        _wild,
    ),
    Special(
        "a block that one part of a tile sees and another hides",
        "an entry of a list says for all parts what it says for one",
        _has_documents,
        lambda _, case: case.tensors == "runs",
        _runs,
    ),
)
