"""The folder's own test program on the emulator: the recorder stands for the driver."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder.recorder import Options, recording
from fa4gen.emulator.report import Verdict
from tests.vendoring.verify.builds import Edit
from tests.vendoring.verify.test_mutants import folder_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fa4gen.emulator.recorder.recorder import Recorder
    from tests.vendoring.verify.builds import Builds

    Run = Callable[..., tuple[subprocess.CompletedProcess[str], Recorder]]

pytestmark = pytest.mark.compile

QUICK = ("--quick", "--seed", "5")
LAUNCHER, SELFTEST = "src/launcher.c", "test/selftest.c"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorder")


@pytest.fixture
def run(cache: Path, tmp_path: Path) -> Run:
    """Run a program of a folder, whose kernels the recorder runs; clean unless it may fail."""

    def run_program(
        builds: Builds, arch: str, program: Path, *words: str, fails: bool = False
    ) -> tuple[subprocess.CompletedProcess[str], Recorder]:
        ptx = tmp_path / "ptx"
        ptx.mkdir()
        for kernel in builds.kernels.values():
            (ptx / f"{kernel.symbol}.ptx").write_text(kernel.compiled.ptx)
        how = Options(arch, (ptx,), record=False)
        with recording(tmp_path / "launches", cache, how, say=lambda _: None) as recorder:
            done = subprocess.run(
                [program, *words],
                env=recorder.environment(),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        assert done.returncode == fails, done.stdout + done.stderr
        verdicts = {one.report.verdict for one in recorder.launches if one.report is not None}
        assert fails or verdicts <= {Verdict.CLEAN}
        return done, recorder

    return run_program


@pytest.mark.parametrize(
    ("name", "arch", "kernels"),
    [
        ("builds", "sm_90a", ("softmax", "heads", "product")),
        ("builds", "sm_100a", ("dynamic", "scaled")),
        ("sequences", "sm_90a", ("ragged", "paged")),
        ("shares", "sm_90a", ("decode", "splits")),
        ("scales", "sm_90a", ("scaled_keys", "scaled_pages", "prefilled_pages")),
        ("products", "sm_90a", ("by_blocks", "by_columns")),
        ("gates", "sm_90a", ("halves", "in_turn", "scaled_gates")),
        ("gates", "sm_100a", ("gated_atoms",)),
        ("blackwell_products", "sm_100a", ("arranged", "fours", "row_major")),
        (
            "rows",
            "sm_90a",
            (
                "offset_groups",
                "masked_blocks",
                "gathered_groups",
                "gathered_blocks",
                "masked_index",
            ),
        ),
        ("scattered", "sm_90a", ("scattered_rows", "scattered_blocks")),
        ("quantised", "sm_90a", ("quantised_rows", "quantised_groups")),
        ("quantised", "sm_100a", ("quantised_fours", "gated_fours")),
        (
            "written_atoms",
            "sm_100a",
            ("quantised_atoms", "atoms_of_offsets", "atoms_of_fours", "atoms_of_masked"),
        ),
        ("sums", "sm_90a", ("sums_by_group",)),
        ("largest", "sm_90a", ("largest_of_all", "largest_of_groups")),
        ("largest", "sm_100a", ("largest_of_blackwell",)),
        ("conditions", "sm_90a", ("sinking",)),
        ("functions", "sm_90a", ("sloping", "documents")),
        ("merging", "sm_90a", ("merged", "merged_floats")),
        ("merging", "sm_100a", ("last_step",)),
        ("lists", "sm_90a", ("listed_documents", "blocks")),
        ("lists", "sm_100a", ("blackwell",)),
    ],
)
def test_it_finds_the_numbers_right(
    build: Callable[[str], Builds], run: Run, name: str, arch: str, kernels: tuple[str, ...]
) -> None:
    builds = build(name)
    done, recorder = run(builds, arch, builds.selftest(), *QUICK)
    assert "seed 5\n" in done.stdout
    for kernel in builds.kernels:
        if kernel in kernels:
            (line,) = [
                row for row in done.stdout.splitlines() if f"acme_{kernel}: passed on NVID" in row
            ]
            assert line.endswith("6 launches")
        else:
            assert f"acme_{kernel}: not run: no GPU here runs" in done.stdout
    assert f"passed: {len(kernels)} of {len(builds.kernels)} kernels were run" in done.stdout
    plans = [builds.kernels[kernel].plan for kernel in kernels]
    listed = {plan.tile_list.entry_point for plan in plans if getattr(plan, "tile_list", None)}
    entries = {one.launch.entry for one in recorder.launches}
    assert entries == {plan.entry_point for plan in plans} | listed


MISTAKES = (
    ("softmax", Edit(LAUNCHER, "(float)(scale * LOG2_E)", "(float)(scale * 1.5)"), "of a row"),
    (
        "softmax",
        Edit(
            LAUNCHER,
            "values->out_row_stride = args->out.row",
            "values->out_row_stride = args->out.head",
        ),
        "out: ",
    ),
    ("product", Edit(LAUNCHER, "(float)args->beta;", "(float)args->alpha;"), "elements are off"),
    ("by_blocks", Edit(SELFTEST, "line / rows", "line / rows / 2"), "elements are off"),
    ("by_columns", Edit(LAUNCHER, "step_of(&views[1], 2, b->k_stride)", "0"), "elements are off"),
    ("by_columns", Edit(LAUNCHER, "values->scale_a = a->data;", "values->scale_a = b->data;"), ""),
    ("halves", Edit(LAUNCHER, "2 * step : step;", "step : 2 * step;"), ""),
    (
        "halves",
        Edit(
            SELFTEST,
            "activate_gate(facts, gate, error, up, up_error",
            "activate_gate(facts, up, up_error, gate, error",
        ),
        "",
    ),
    ("in_turn", Edit(SELFTEST, "2 * column + 1 :", "2 * column :"), "elements are off"),
    ("in_turn", Edit(LAUNCHER, "? step : columns * step", "? columns * step : step"), ""),
    (
        "scaled_gates",
        Edit(LAUNCHER, "extents->extent[DIM_HALF] = 2;", "extents->extent[DIM_HALF] = 1;"),
        "",
    ),
    (
        "arranged",
        Edit(LAUNCHER, "SCALE_A: return &scales[0]", "SCALE_A: return &scales[1]"),
        "elements are off",
    ),
    ("fours", Edit(SELFTEST, "(half & 8) << 4", "0"), "elements are off"),
    ("row_major", Edit(LAUNCHER, "step_of(&views[0], 1, a->stride)", "0"), "elements are off"),
    (
        "offset_groups",
        Edit(LAUNCHER, "row_offsets = args->row_offsets;", "row_offsets = args->row_offsets + 1;"),
        "",
    ),
    ("offset_groups", Edit(SELFTEST, "      if (stays) continue;\n", ""), "were never written"),
    (
        "masked_blocks",
        Edit(LAUNCHER, "values->groups = (int32_t)args->batch", "values->groups = 1"),
        "were never written",
    ),
    (
        "gathered_groups",
        Edit(
            LAUNCHER,
            "extents->extent[DIM_PLACE] = of->extents[1] + 1",
            "extents->extent[DIM_PLACE] = 1",
        ),
        "",
    ),
    ("gathered_blocks", Edit(LAUNCHER, "a_rows = (int32_t)args->a_rows", "a_rows = 1"), "off"),
    (
        "gathered_blocks",
        Edit(SELFTEST, "row_a < 0 ? 0 : row_a, of->blocks", "0, of->blocks"),
        "off",
    ),
    ("masked_index", Edit(LAUNCHER, "index->strides[0] / (int64_t)", "0 * (int64_t)"), "off"),
    ("scattered_rows", Edit(LAUNCHER, "out_index = args->out_index;", "out_index = 0;"), "illegal"),
    (
        "scattered_rows",
        Edit(LAUNCHER, "row_weights = args->row_weights;", "row_weights = args->row_weights + 1;"),
        "elements are off",
    ),
    ("scattered_rows", Edit(SELFTEST, "{*low * weight, *high * weight}", "{*low, *high}"), ""),
    ("scattered_blocks", Edit(LAUNCHER, ": (int32_t)args->out_rows;", ": 1;"), "never written"),
    (
        "quantised_rows",
        Edit(LAUNCHER, "step_of(&views[OF_OUT], 2, out->k_stride)", "0"),
        "out_scales: ",
    ),
    ("quantised_rows", Edit(SELFTEST, "counted / largest;", "counted / 440;"), "out_scales: "),
    ("quantised_rows", Edit(SELFTEST, "x / scale * (1 + near)", "x / scale * 1.1"), "are off"),
    ("quantised_groups", Edit(SELFTEST, "part > 0.5 ? exponent :", "part > 2 ? exponent :"), ""),
    (
        "quantised_fours",
        Edit(LAUNCHER, "out_tensor_scale = args->out_tensor_scale;", "out_tensor_scale = NULL;"),
        "illegal",
    ),
    (
        "quantised_fours",
        Edit(LAUNCHER, "extents.extent[DIM_N] /= kernel->out_elements_per_byte;", "{}"),
        "outside its elements",
    ),
    ("quantised_fours", Edit(SELFTEST, "scale * per_tensor;", "scale;"), "out_scales: "),
    (
        "gated_fours",
        Edit(
            SELFTEST,
            "at(out, of->batch, stored, 0, n / per_byte)",
            "at(out, of->batch, stored, 0, n / per_byte / 2)",
        ),
        "are off",
    ),
    (
        "quantised_atoms",
        Edit(LAUNCHER, "step_of(&views[OF_OUT], 2, out->k_stride)", "0"),
        "out_scales: ",
    ),
    ("quantised_atoms", Edit(SELFTEST, "+ 4 * (row / 32) +", "+ 4 * (row / 64) +"), "off by more"),
    (
        "quantised_atoms",
        Edit(SELFTEST, "row < p->rows.count[i] ? blocks : 0;", "row > 0 ? 0 : blocks;"),
        "is not 0",
    ),
    (
        "atoms_of_offsets",
        Edit(LAUNCHER, "rows / ATOM_ROWS + args->batch :", "rows / ATOM_ROWS :"),
        "",
    ),
    (
        "atoms_of_offsets",
        Edit(SELFTEST, "rows += divide_up(p->rows.count[i], ATOM_ROWS) * ATOM_ROWS;", ";"),
        "",
    ),
    ("atoms_of_offsets", Edit(SELFTEST, "return rows_before(p, i) + row;", "return line;"), ""),
    (
        "atoms_of_masked",
        Edit(LAUNCHER, "step_of(&views[OF_OUT], 0, out->batch_stride)", "0"),
        "out_scales: ",
    ),
    (
        "atoms_of_masked",
        Edit(SELFTEST, "out_scales_in_atoms ? mark_atoms :", "amax ? mark_atoms :"),
        "out_scales: ",
    ),
    (
        "sums_by_group",
        Edit(LAUNCHER, "row_offsets = args->row_offsets;", "row_offsets = args->row_offsets + 1;"),
        "",
    ),
    ("sums_by_group", Edit(SELFTEST, "(first + x) / per_byte), x)", "x / per_byte), x)"), ""),
    (
        "largest_of_groups",
        Edit(LAUNCHER, "out_amax = args->out_amax;", "out_amax = args->out_amax + 1;"),
        "",
    ),
    ("largest_of_all", Edit(SELFTEST, "raise_to(&amax->high, ", "(void)("), "out_amax: "),
    ("paged", Edit(LAUNCHER, "values->sinks = args->sinks;", "values->sinks = args->lse;"), ""),
    ("ragged", Edit(LAUNCHER, "] = WRAP - step;", "] = WRAP;"), "illegal memory"),
    ("sinking", Edit(SELFTEST, "query - key < 60 ||", "query - key < 59 ||"), ""),
    (
        "sloping",
        Edit(SELFTEST, "(double)(query - key)", "(double)(query - key + (key == query))"),
        "",
    ),
    ("documents", Edit(SELFTEST, "key % 3 == 0 ? 0.5", "key % 3 == 0 ? 0.53"), ""),
    ("documents", Edit(SELFTEST, "|| head == 1", "|| head == 2"), ""),
    ("merged", Edit(LAUNCHER, "num_parts = (int32_t)args->num_parts", "num_parts = 1"), "output"),
    (
        "merged",
        Edit(LAUNCHER, "lse_row_stride = args->lse.row_stride;", "lse_row_stride = 1;"),
        "lse: ",
    ),
    ("merged", Edit(SELFTEST, "(!(row.weights[i] > 0)) continue;", "(0) continue;"), "output"),
    ("merged", Edit(SELFTEST, "row.largest + log(row.sum)", "row.largest"), "log-sum-exp"),
    (
        "merged",
        Edit(SELFTEST, "memset(t->unwritten + (size_t)over * part, 0, part);", ""),
        "parts: a byte outside its elements was written",
    ),
    ("last_step", Edit(SELFTEST, "row.weights[i] * element(", "element("), "output"),
    (
        "blocks",
        Edit(SELFTEST, "int64_t entry = 64 * block;", "int64_t entry = 64 * (block ^ 1);"),
        "",
    ),
    ("blocks", Edit(SELFTEST, "      all &= sees;", ""), ""),
    ("blocks", Edit(SELFTEST, "between &= sees;", ";"), ""),
    ("blocks", Edit(SELFTEST, "= key + 1;", "= key;"), ""),
    ("blocks", Edit(SELFTEST, "range[0] = tile;", "range[0] = tile > 0 ? tile - 1 : 0;"), ""),
    ("blocks", Edit(SELFTEST, "spot.head = head,", "spot.head = 1 - head,"), ""),
)
"""Edits of the launcher, or of the program's own reference and lists."""


@pytest.mark.parametrize(("kernel", "edit", "said"), MISTAKES)
def test_a_mistake_is_found(
    build: Callable[[str], Builds], run: Run, kernel: str, edit: Edit, said: str
) -> None:
    builds = build(folder_of(kernel))
    words = ("--kernel", f"acme_{kernel}")
    arch = builds.kernels[kernel].plan.arch
    done, _ = run(builds, arch, builds.selftest(edit), *QUICK, *words, fails=True)
    assert (said or f"acme_{kernel}: FAILED on NVIDIA") in done.stdout + done.stderr
