"""The tables in configs/tuned/: configs are what was measured, and every problem has its kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fa4gen.config.entries import tables_in
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.config.set_file import read_set
from fa4gen.tune.committed import chip_file, committed_tables
from fa4gen.tune.family import family_called
from fa4gen.tune.follow import between
from fa4gen.tune.kernel_set import load_candidates, open_set
from fa4gen.tune.model.chips import CHIPS, chip_for
from fa4gen.tune.search.record import read_record
from fa4gen.tune.search.table import check_table, chip_text

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "configs" / "tuned").iterdir())
TABLES = [table for file in FILES for table in tables_in(file)]


def test_there_are_tables() -> None:
    assert "nvidia_h200.yaml" in {table.parent.name for table in TABLES}
    assert "gemm_bf16_sm90.tuning.yaml" in [table.name for table in TABLES]


@pytest.mark.parametrize(
    "table", TABLES, ids=lambda table: f"{table.parent.name} {table.name.partition('.')[0]}"
)
def test_a_table(table: Path) -> None:
    assert check_table(table).verdict == "current"
    file = read_set(table)
    assert (file.decided_by, chip_file(file.chip)) == ("measurement", table.parent.name)
    assert file.chip in {chip.name for chip in CHIPS}
    kernels = open_set(table)
    family = family_called(load_config(find_configs([file.base])[0]).config.kernel)
    for region in file.regions:
        assert region.us is not None
        extents = family.extents(family.parse_problem(region.problem))
        assert not any(part.holds(extents) for part in file.between)
        assert region.peers_us
        assert kernels.choose(region.problem) == region.kernel


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_as_tuning_writes_it(file: Path) -> None:
    """Tiles that no table names are left out, and tables are sorted."""
    content = yaml.safe_load(file.read_text())
    assert chip_text(content["tables"], content["tiles"]) == file.read_text()


CHOSEN = (
    ("d128_causal_bf16", "32x16x512x512", "d128_causal_bf16_192x64"),
    ("d128_causal_bf16", "8x16/16x2779x1501", "d128_causal_bf16"),
    ("d192_causal_bf16", "32x10x512x512", "d192_causal_bf16_128x64"),
    ("d192_causal_bf16", "16x10/10x1364x837", "d192_causal_bf16_128x96"),
    ("d192_dense_bf16", "4x10x4096x4096", "d192_dense_bf16_128x96_pair"),
    ("d256_causal_bf16", "32x8x512x512", "d256_causal_bf16_128x64"),
    ("gemm_bf16_residual_sm90", "14x6144x4096", "gemm_bf16_residual_sm90_16x128_swapped"),
    ("gemm_bf16_residual_sm90", "580x37888x3584", "gemm_bf16_residual_sm90_128x192"),
    ("gemm_bf16_residual_sm90", "1543x4096x14336", "gemm_bf16_residual_sm90_128x224_evict"),
    ("gemm_bf16_residual_sm90", "5313x3584x18944", "gemm_bf16_128x144_residual_sm90"),
    ("gemm_bf16_sm90", "4x28672x4096", "gemm_bf16_m16_sm90"),
    ("gemm_bf16_sm90", "64x28672x4096", "gemm_bf16_sm90_64x128_swapped"),
    ("gemm_bf16_sm90", "373x3584x18944", "gemm_bf16_sm90_128x96_evict_both"),
    ("gemm_bf16_sm90", "5088x6144x4096", "gemm_bf16_sm90_256x192"),
    ("gemm_fp8_sm90", "52x4096x14336", "gemm_fp8_sm90_64x64_swapped_evict_both"),
    ("gemm_fp8_sm90", "405x28672x4096", "gemm_fp8_ping_pong_sm90"),
    ("gemm_fp8_sm90", "16735x4096x4096", "gemm_fp8_sm90_128x128_pair_ping_pong"),
)
"""Problems within regions and between them, with what the tables of an H200 have chosen."""


@pytest.mark.parametrize(("base", "problem", "kernel"), CHOSEN)
def test_choices_of_an_h200(base: str, problem: str, kernel: str) -> None:
    """However tables and tiles are kept, these stay."""
    (table,) = (
        one for one in TABLES if one.name == f"{base}.tuning.yaml" and "h200" in one.parts[-2]
    )
    assert open_set(table).choose(problem) == kernel


@pytest.mark.parametrize("family", ["products", "products_residual", "attention"])
def test_records_are_those_of_the_tables(family: str) -> None:
    lines = (ROOT / "benchmarks/results" / f"tuned_{family}_h200.jsonl").read_text().splitlines()
    records = [read_record(json.dumps(json.loads(line)["details"])) for line in lines]
    tables = {file.base: file for file in map(read_set, committed_tables("NVIDIA H200"))}
    compared = 0
    for record in records:
        assert record.chosen is not None
        if record.base in tables:
            (region,) = (r for r in tables[record.base].regions if r.problem == record.problem)
            assert (region.kernel, region.us) == (record.winner, record.chosen.us)
            compared += 1
    assert compared >= 30


def test_parts_between_problems_are_what_the_model_says() -> None:
    """After a change of the model: write the tables again, with ``between``."""
    table = next(one for one in TABLES if one.name == "gemm_fp8_sm90.tuning.yaml")
    for path in (table, table.parents[1] / "nvidia_h200.yaml" / table.name):
        file = read_set(path)
        candidates = {one.name: one for one in load_candidates(file)}
        chip = chip_for("sm_90a", file.chip)
        found = between(family_called("gemm"), file.regions, candidates, chip)
        assert tuple(found) == file.between
