from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.config.entries import tables_in
from fa4gen.config.find import find_configs
from fa4gen.config.load import LoadedConfig, load_config
from fa4gen.config.set_file import read_set
from fa4gen.errors import ConfigError
from fa4gen.tune.family import family_called
from fa4gen.tune.kernel_set import open_set
from fa4gen.tune.search.run import TuneOptions, run_problem, tasks_for
from fa4gen.tune.search.table import check_table, make_table, regions, write_table
from tests.tune.search.fakes import inline

if TYPE_CHECKING:
    from pathlib import Path

BASE = "gemm_bf16_sm90"
GEMM = family_called("gemm")
LAYER = {"n": 4096, "k": 14336, "batch": 1}
PROBLEMS = ["16x4096x14336", "64x4096x14336", "512x4096x14336", "4104x4104x4104"]


def records_of(*problems: str, base: LoadedConfig | None = None) -> list[Any]:
    base = base or load_config(find_configs([BASE])[0])
    parsed = [GEMM.parse_problem(problem) for problem in problems]
    tasks = tasks_for(base, parsed, TuneOptions(candidates=2, measuring="never"), {})
    return [done.result.record for _, done in inline(run_problem, tasks)]


@pytest.fixture(scope="module")
def records() -> list[Any]:
    return records_of(*PROBLEMS)


@pytest.fixture
def table(tmp_path: Path, records: list[Any]) -> Path:
    base = load_config(find_configs([BASE])[0])
    files = make_table(base, records, tmp_path, now=datetime(2026, 11, 22, tzinfo=UTC))
    write_table(files, force=False)
    return files.table


def test_regions_divide_the_axis(records: list[Any]) -> None:
    where = {region.problem: region.where for region in regions(GEMM, records)}
    # a kernel with swapped operands suits as many rows as one tile has
    layer = {"n": (4096, 4096), "k": (14336, 14336), "batch": (1, 1)}
    assert where["16x4096x14336"] == {"m": (1, 16), **layer}
    assert where["64x4096x14336"]["m"] == (33, 64)
    assert where["512x4096x14336"]["m"] == (182, 724)
    assert where["4104x4104x4104"]["m"] == (2902, 5803)


def test_every_problem_is_in_its_own_region_alone(records: list[Any]) -> None:
    for region in regions(GEMM, records):
        for record in records:
            assert region.holds(record.extents) is (record.problem == region.problem)


def test_the_table_is_a_set_that_picks_what_was_chosen(table: Path, records: list[Any]) -> None:
    file = read_set(table)
    assert (file.base, file.decided_by, file.chip) == (BASE, "model", "NVIDIA H200")
    assert file.content.date == "2026-11-22"
    assert all(region.us is None and region.predicted_us for region in file.regions)
    kernels = open_set(table)
    assert [kernels.choose(problem) for problem in PROBLEMS] == [one.winner for one in records]
    assert "predicted by the cost model; nothing was measured" in table.read_text()


def test_a_table_for_few_rows_has_the_config_itself_for_many(tmp_path: Path) -> None:
    base = load_config(find_configs([BASE])[0])
    files = make_table(base, records_of("16x4096x14336"), tmp_path)
    write_table(files, force=False)
    kernels = open_set(files.table)
    assert kernels.choose("16x4096x14336") != BASE
    assert kernels.choose("4096x4096x4096") == BASE


def test_parts_between_problems_name_another_kernel(tmp_path: Path) -> None:
    """Up to 256 rows of the first are one wave; the second is the better one before its region."""
    base = load_config(find_configs([BASE])[0])
    files = make_table(base, records_of("256x4096x14336", "512x4096x14336"), tmp_path)
    write_table(files, force=False)
    file, kernels = read_set(files.table), open_set(files.table)
    assert file.followed == (*file.between, *file.regions)
    assert all(part.kernel in kernels.names and not part.problem for part in file.between)
    (part, *_) = (one for one in file.between if one.holds({"m": 333, **LAYER}))
    (region,) = (one for one in file.regions if one.holds({"m": 333, **LAYER}))
    assert kernels.choose("333x4096x14336") == part.kernel != region.kernel


def test_new_tiles_are_configs_in_it(table: Path) -> None:
    assert list(table.parent.iterdir()) == [table]
    tile = table / f"{BASE}_128x128_evict"
    config = load_config(tile).config
    assert (config.name, config.BM, config.BN) == (f"{BASE}_128x128_evict", 128, 128)  # type: ignore[union-attr]
    assert tile in find_configs([table])
    assert find_configs([tile]) == [tile]
    assert set(find_configs([table])) < set(read_set(table).configs)


def test_the_tables_of_a_chip_stand_in_one_file(
    tmp_path: Path, records: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    base, file = load_config(find_configs([BASE])[0]), tmp_path / "chip.yaml"
    other = load_config(find_configs(["gemm_bf16_residual_sm90"])[0])
    write_table(make_table(other, records_of("16x4096x14336", base=other), file), force=False)
    files = make_table(base, records, file)
    write_table(files, force=False)
    assert files.table == file / f"{BASE}.tuning.yaml"
    assert tables_in(file) == [file / "gemm_bf16_residual_sm90.tuning.yaml", files.table]
    kernels = open_set(files.table)
    assert [kernels.choose(problem) for problem in PROBLEMS] == [one.winner for one in records]
    again = make_table(base, records[:1], file)
    write_table(again, force=False)
    assert len(find_configs([file])) < len(files.tiles)  # tiles that no table names are gone
    assert len(tables_in(file)) == 2
    assert main(["check", str(file)]) == 0
    assert "2 files: 2 current" in capsys.readouterr().out


def test_a_table_or_tile_that_is_not_in_the_file(table: Path, tmp_path: Path) -> None:
    chip = tmp_path / "chip.yaml"
    chip.write_text(f"tables:\n  {BASE}:\n    kernels: [{BASE}]\n")
    with pytest.raises(ConfigError, match="no table called gone is in this file"):
        read_set(chip / "gone.tuning.yaml")
    with pytest.raises(ConfigError, match=f"Did you mean .*{BASE}_128x128_evict"):
        find_configs([table / f"{BASE}_128x129_evict"])
    chip.write_text(f"tables:\n  {BASE}:\n    kernels: [{BASE}]\n    regoins: []\n")
    with pytest.raises(ConfigError, match=r"chip.yaml:4:5: unknown key regoins"):
        read_set(chip / f"{BASE}.tuning.yaml")


def test_a_wrong_key_of_a_tile_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "x.tuning.yaml"
    keys = "kernel: gemm, arch: sm_90a, dtype: bf16"
    file.write_text(f"kernels: [t]\nregions: []\ntiles:\n  t: {{{keys}, BMM: 64}}\n")
    with pytest.raises(ConfigError, match=r"x.tuning.yaml:4:48: unknown key BMM"):
        load_config(file / "t")


def test_check_knows_the_table(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    assert main(["render", table.name]) == 0
    assert main(["check", "."]) == 0
    assert main(["check", table.name]) == 0
    assert "1 file: 1 current" in capsys.readouterr().out
    line = f"  {BASE}_128x128_evict: {{"
    text = table.read_text()
    table.write_text(text.replace(line, f"{line}num_stages: 2, "))
    assert main(["check", "."]) == 3
    out = capsys.readouterr().out
    assert f"changed since tuning: {BASE}_128x128" in out
    assert f"fa4gen tune {BASE} --problem 16x4096x14336 --problem" in out
    table.write_text(text.replace(line, "  gone: {"))
    assert main(["check", table.name]) == 2
    assert "128x128_evict: no such file" in capsys.readouterr().err


def test_a_tile_that_was_edited_is_not_overwritten(table: Path, records: list[Any]) -> None:
    base = load_config(find_configs([BASE])[0])
    text, line = table.read_text(), f"  {BASE}_128x128_evict: {{"
    table.write_text(text.replace(line, f"{line}num_stages: 2, "))
    files = make_table(base, records, table.parent)
    with pytest.raises(ConfigError, match="not what tuning would write"):
        write_table(files, force=False)
    assert check_table(table).verdict == "stale"
    write_table(files, force=True)
    assert text.partition("regions:")[2] == table.read_text().partition("regions:")[2]
    assert check_table(table).verdict == "current"


def test_a_config_of_ones_own_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "kernel: gemm\narch: sm_90a\ndtype: bf16\nb_major: n\nevict_first: both\n"
        "num_epi_stages: 2\n"
    )
    base = load_config(path)
    tasks = tasks_for(base, [GEMM.parse_problem("4kx4kx4k")], TuneOptions(measuring="never"), {})
    found = [done.result.record for _, done in inline(run_problem, tasks)]
    files = make_table(base, found, tmp_path / "out")
    write_table(files, force=False)
    assert open_set(files.table).names == ("mine",)
    assert "../mine.yaml" in files.table.read_text()


def test_results_of_two_chips_make_no_table(records: list[Any], tmp_path: Path) -> None:
    base = load_config(find_configs([BASE])[0])
    mixed = [records[0], replace(records[1], chip="NVIDIA H100 80GB HBM3")]
    with pytest.raises(ConfigError, match="different kinds: NVIDIA H100"):
        make_table(base, mixed, tmp_path)
    with pytest.raises(ConfigError, match="no kernel was chosen"):
        make_table(base, [replace(records[0], winner="")], tmp_path)
