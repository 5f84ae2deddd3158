"""The barrier table against the document of Depth512MBars, and the header against the table."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.build import build_plan
from fa4gen.render.render import render

if TYPE_CHECKING:
    from pathlib import Path

PlanOf = Callable[..., Depth512Config]

DTYPES = pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8_e4m3"])
KEYS = {"kernel": "attention", "arch": "sm_100a", "depth": 512, "cta_group": 2}

# The document's offsets, in units of barriers from the start of the table, and its counts: what
# the threads of one CTA arrive on is counted for that CTA alone.
DOCUMENT = {
    "po_lo": (0, 256),
    "po_hi": (1, 128),
    "s_even_consumer": (2, 128),
    "s_odd_consumer": (3, 128),
    "c_producer": (4, 128),
    "c_consumer": (5, 128),
    "s_even_producer": (6, 1),
    "s_odd_producer": (7, 1),
    "o_mma_lo": (8, 1),
    "o_mma_hi": (9, 1),
    "kv_producer": (10, 1),
}
COUNTED_FOR_BOTH = ("po_lo", "po_hi", "s_even_consumer", "s_odd_consumer")
"""The leader's MMA warp waits for these."""


def header_of(dtype: str) -> tuple[Depth512Config, str, str]:
    """The plan, and the header's name and text."""
    loaded = load_mapping({**KEYS, "dtype": dtype}, "header")
    plan = build_plan(loaded.config)
    assert isinstance(plan, Depth512Config)
    name = "header_barriers.h"
    return plan, name, render(plan, loaded).headers[name]


@DTYPES
@pytest.mark.parametrize("name", DOCUMENT)
def test_offsets_are_those_of_the_document(plan_of: PlanOf, dtype: str, name: str) -> None:
    plan = plan_of(dtype=dtype)
    assert plan.barrier("po_lo").offset == plan.region("barriers").offset
    offset, _ = DOCUMENT[name]
    assert plan.barrier(name).offset - plan.region("barriers").offset == 8 * offset


@DTYPES
@pytest.mark.parametrize("stages", [1, 2, 3, 4, "auto"])
def test_the_ring_is_all_producers_then_all_consumers(
    plan_of: PlanOf, dtype: str, stages: object
) -> None:
    plan = plan_of(dtype=dtype, num_kv_stages=stages)
    producers, consumers = plan.barrier("kv_producer"), plan.barrier("kv_consumer")
    assert producers.slots == consumers.slots == plan.num_kv_stages
    assert consumers.offset == producers.offset + 8 * plan.num_kv_stages
    ours = [row for row in plan.barriers if row.offset < consumers.offset + consumers.bytes]
    assert sum(row.slots for row in ours) == 10 + 2 * plan.num_kv_stages
    # the kernel's own rows go behind the document's
    assert [row.name for row in ours] == [*DOCUMENT, "kv_consumer"]
    assert [row.name for row in plan.barriers[len(ours) :]] == [
        "query_empty",
        "tile_full",
        "tile_empty",
    ]


@DTYPES
def test_counts_of_a_cta_are_those_of_the_document(plan_of: PlanOf, dtype: str) -> None:
    plan = plan_of(dtype=dtype)
    for name, (_, count) in DOCUMENT.items():
        row = plan.barrier(name)
        both = name in COUNTED_FOR_BOTH
        assert row.arrivals == (2 * count if both else count), name
        assert (row.cta == "leader") == (both or name == "kv_producer"), name
        assert ("both CTAs" in row.arrived_by) == (both or name == "kv_producer"), name
    threads = [row.name for row in plan.barriers if row.arrive_how == "thread"]
    assert threads[:6] == list(DOCUMENT)[:6]  # num_high_count_barriers
    assert min(plan.barrier(name).arrivals for name in threads[:6]) == 128


def test_commits_arrive_in_both_ctas(plan_of: PlanOf) -> None:
    plan = plan_of()
    commits = {row.name for row in plan.barriers if row.arrive_how == "multicast_commit"}
    assert commits == {
        "s_even_producer", "s_odd_producer", "o_mma_lo", "o_mma_hi", "kv_consumer",
    }  # fmt: skip
    assert {plan.barrier(name).cta for name in commits} == {"own"}


def test_first_waits(plan_of: PlanOf) -> None:
    """Who waits for a free buffer passes at first; the products of P wait for P."""
    plan = plan_of()
    passing = {row.name for row in plan.barriers if row.first_wait_parity == 1}
    assert passing == {
        "s_even_consumer", "s_odd_consumer", "c_consumer", "kv_consumer", "query_empty",
        "tile_empty",
    }  # fmt: skip


@DTYPES
def test_bytes_of_a_slot_are_those_of_both_ctas(plan_of: PlanOf, dtype: str) -> None:
    plan = plan_of(dtype=dtype)
    boxes = {tensor_map.tensor: tensor_map.box_bytes for tensor_map in plan.tensor_maps}
    slot = 128 * 128 * plan.element_bytes
    assert boxes["key"] == boxes["value"] == plan.region("kv").slot_bytes == slot
    assert boxes["query"] * plan.num_qk_stages == plan.region("query").slot_bytes
    assert plan.barrier("kv_producer").transaction_bytes == 2 * slot


@pytest.mark.parametrize(
    ("scheduler", "full", "empty"),
    [("static", ("own", 1), ("own", 9)), ("dynamic", ("pair", 1), ("leader", 19))],
)
def test_tiles_of_a_pair(plan_of: PlanOf, scheduler: str, full: object, empty: object) -> None:
    plan = plan_of(scheduler=scheduler)
    rows = {row.name: (row.cta, row.arrivals) for row in plan.barriers}
    assert (rows["tile_full"], rows["tile_empty"]) == (full, empty)


def host_program(plan: Depth512Config, header: str) -> str:
    """Asserts what the document says of the header's constants."""
    where = f"{plan.name}_kernel"
    checks = []
    for name, (offset, count) in DOCUMENT.items():
        constant = plan.barrier(name).constant
        arrivals = 2 * count if name in COUNTED_FOR_BOTH else count
        checks += [
            f"{where}::{constant} == {where}::kBarriersOffset + 8 * {offset}",
            f"{where}::{constant}Arrivals == {arrivals}",
        ]
    slots = f"{where}::{plan.barrier('kv_producer').constant}Slots"
    consumers = plan.barrier("kv_consumer").constant
    checks += [
        f"{slots} == {plan.num_kv_stages}",
        f"{where}::{consumers} == {where}::kBarriersOffset + 8 * (10 + {slots})",
        f"{where}::kTensorMemoryColumns == 512",
    ]
    lines = [f'static_assert({check}, "{check}");' for check in checks]
    # twice: a project may include it from several of its own headers
    return "\n".join([f'#include "{header}"'] * 2 + lines + ["int main() { return 0; }", ""])


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@DTYPES
def test_the_header_serves_a_plain_host_program(dtype: str, tmp_path: Path) -> None:
    plan, name, text = header_of(dtype)
    (tmp_path / name).write_text(text)
    (tmp_path / "host.cpp").write_text(host_program(plan, name))
    done = subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "host.cpp", "-o", "host"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "host"], check=False).returncode == 0
