"""The tables in configs/tuned/: configs are what was measured, and every problem has its kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.config.set_file import read_set
from fa4gen.tune.committed import chip_folder, committed_tables
from fa4gen.tune.family import family_called
from fa4gen.tune.follow import between
from fa4gen.tune.kernel_set import load_candidates, open_set
from fa4gen.tune.model.chips import CHIPS, chip_for
from fa4gen.tune.search.record import read_record
from fa4gen.tune.search.table import check_table

ROOT = Path(__file__).resolve().parents[3]
TABLES = sorted((ROOT / "configs" / "tuned").rglob("*.tuning.yaml"))


def test_there_are_tables() -> None:
    assert "nvidia_h200" in {table.parent.name for table in TABLES}
    assert "gemm_bf16_sm90.tuning.yaml" in [table.name for table in TABLES]


@pytest.mark.parametrize(
    "table", TABLES, ids=lambda table: f"{table.parent.name} {table.name.partition('.')[0]}"
)
def test_a_table(table: Path) -> None:
    assert check_table(table).verdict == "current"
    file = read_set(table)
    assert (file.decided_by, chip_folder(file.chip)) == ("measurement", table.parent.name)
    assert file.chip in {chip.name for chip in CHIPS}
    kernels = open_set(table)
    family = family_called(load_config(find_configs([file.base])[0]).config.kernel)
    for region in file.regions:
        assert region.us is not None
        extents = family.extents(family.parse_problem(region.problem))
        assert not any(part.holds(extents) for part in file.between)
        assert region.peers_us
        assert kernels.choose(region.problem) == region.kernel
    unnamed = {path.stem for path in table.parent.glob(f"{file.base}_*.yaml")}
    others = {other.stem for other in TABLES} | set(kernels.names)
    assert unnamed <= others  # no config without a region


@pytest.mark.parametrize("family", ["gemm", "residual", "attention"])
def test_records_are_those_of_the_tables(family: str) -> None:
    lines = (ROOT / "docs" / f"tune_h200_{family}.jsonl").read_text().splitlines()
    records = [read_record(line) for line in lines]
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
    """After a change of the model: write the tables again, with ``between_data``."""
    table = next(one for one in TABLES if one.name == "gemm_fp8_sm90.tuning.yaml")
    for path in (table, table.parents[1] / "nvidia_h200" / table.name):
        file = read_set(path)
        candidates = {one.name: one for one in load_candidates(file)}
        chip = chip_for("sm_90a", file.chip)
        found = between(family_called("gemm"), file.regions, candidates, chip)
        assert tuple(found) == file.between
