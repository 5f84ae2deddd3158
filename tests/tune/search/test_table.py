from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
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


def records_of(*problems: str) -> list[Any]:
    base = load_config(find_configs([BASE])[0])
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
    where = {record.problem: where for record, where in regions(GEMM, records)}
    # a kernel with swapped operands suits as many rows as one tile has
    assert where["16x4096x14336"] == {"m": [1, 16], "n": 4096, "k": 14336, "batch": 1}
    assert where["64x4096x14336"]["m"] == [33, 64]
    assert where["512x4096x14336"]["m"] == [182, 724]
    assert where["4104x4104x4104"]["m"] == [2902, 5803]


def test_every_problem_is_in_its_own_region_alone(records: list[Any]) -> None:
    for record, where in regions(GEMM, records):
        for other, _ in regions(GEMM, records):
            ends = [v if isinstance(v, list) else [v, v] for v in where.values()]
            inside = all(
                low <= other.extents[name] <= high
                for name, (low, high) in zip(where, ends, strict=True)
            )
            assert inside is (other is record)


def test_the_table_is_a_set_that_picks_what_was_chosen(table: Path, records: list[Any]) -> None:
    file = read_set(table)
    assert (file.base, file.decided_by, file.chip) == (BASE, "model", "NVIDIA H200")
    assert file.date == "2026-11-22"
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


def test_new_tiles_are_configs_beside_it(table: Path) -> None:
    written = sorted(path.name for path in table.parent.iterdir())
    assert f"{BASE}_128x128_evict.yaml" in written
    config = load_config(table.parent / f"{BASE}_128x128_evict.yaml").config
    assert (config.name, config.BM, config.BN) == (f"{BASE}_128x128_evict", 128, 128)  # type: ignore[union-attr]
    assert [path.name for path in find_configs([table.parent])] == [
        name for name in written if not name.endswith(".tuning.yaml")
    ]


def test_check_knows_the_table(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    assert main(["render", "."]) == 0
    assert main(["check", "."]) == 0
    assert main(["check", table.name]) == 0
    assert "1 file: 1 current" in capsys.readouterr().out
    tile = table.parent / f"{BASE}_128x128_evict.yaml"
    tile.write_text(tile.read_text().replace("BN: 128", "BN: 112"))
    assert main(["render", "."]) == 0
    capsys.readouterr()
    assert main(["check", "."]) == 3
    out = capsys.readouterr().out
    assert f"changed since tuning: {BASE}_128x128" in out
    assert f"fa4gen tune {BASE} --problem 16x4096x14336 --problem" in out
    tile.unlink()
    assert main(["check", table.name]) == 2
    assert "128x128_evict.yaml: no such file" in capsys.readouterr().err


def test_a_config_that_was_edited_is_not_overwritten(table: Path, records: list[Any]) -> None:
    base = load_config(find_configs([BASE])[0])
    tile = table.parent / f"{BASE}_128x128_evict.yaml"
    text = tile.read_text()
    tile.write_text(text + "num_stages: 2\n")
    files = make_table(base, records, table.parent)
    with pytest.raises(ConfigError, match="not what tuning would write"):
        write_table(files, force=False)
    assert check_table(table).verdict == "stale"
    write_table(files, force=True)
    assert tile.read_text() == text
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
    from dataclasses import replace

    base = load_config(find_configs([BASE])[0])
    mixed = [records[0], replace(records[1], chip="NVIDIA H100 80GB HBM3")]
    with pytest.raises(ConfigError, match="different kinds: NVIDIA H100"):
        make_table(base, mixed, tmp_path)
    with pytest.raises(ConfigError, match="no kernel was chosen"):
        make_table(base, [replace(records[0], winner="")], tmp_path)
