from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import ConfigError
from fa4gen.render.check import FileVerdict, kernel_verdicts
from tests.render.written import check_generated, write_kernel

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "kernel: attention\narch: sm_90a\ndtype: fp16\ndepth: 64\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "generated"


def by_name(verdicts: list[FileVerdict]) -> dict[str, str]:
    return {v.path.name: v.verdict for v in verdicts}


def test_missing_then_current(render_small, out: Path) -> None:
    kernel = render_small()
    assert set(by_name(check_generated([kernel], out)).values()) == {"missing"}
    assert not out.exists()
    write_kernel(kernel, out)
    assert by_name(check_generated([kernel], out)) == dict.fromkeys(kernel.files, "current")


def test_stale_when_the_template_changed(render_small, write_template, out: Path) -> None:
    write_kernel(render_small(), out)
    write_template("device/rings/barriers.h.j2", "// new\n")
    assert by_name(check_generated([render_small()], out)) == {
        "small.cu": "current",
        "small_barriers.h": "stale",
        "small_device.cuh": "current",
        "small.json": "stale",
    }


def test_edited_file_beside_stale_ones(render_small, write_template, out: Path) -> None:
    write_kernel(render_small(), out)
    (out / "sm_90a/small/small_barriers.h").write_text("// mine\n")
    assert by_name(check_generated([render_small()], out))["small_barriers.h"] == "edited"
    write_template("attention_sm90/kernel.cu.j2", "// new\n")
    assert by_name(check_generated([render_small()], out)) == {
        "small.cu": "stale",
        "small_barriers.h": "edited",
        "small_device.cuh": "current",
        "small.json": "stale",
    }


def test_edited_manifest(render_small, out: Path) -> None:
    write_kernel(render_small(), out)
    path = out / "sm_90a/small/small.json"
    path.write_text(path.read_text().replace('"rendered"', '"ran on a GPU"'))
    verdicts = check_generated([render_small()], out)
    assert by_name(verdicts) == {
        "small.cu": "current",
        "small_barriers.h": "current",
        "small_device.cuh": "current",
        "small.json": "edited",
    }


def test_without_its_manifest_a_differing_file_counts_as_edited(
    render_small, write_template, out: Path
) -> None:
    write_kernel(render_small(), out)
    (out / "sm_90a/small/small.json").unlink()
    write_template("device/rings/barriers.h.j2", "// new\n")
    verdicts = {v.path.name: v for v in check_generated([render_small()], out)}
    assert verdicts["small_barriers.h"].verdict == "edited"
    assert "no intact small.json records it" in verdicts["small_barriers.h"].reason
    assert verdicts["small.json"].verdict == "missing"


def test_orphans_of_a_config_that_is_gone(render_small, out: Path) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    gone = render_small(OTHER, "gone")
    write_kernel(gone, out)
    (out / "sm_90a/gone/gone.cu").write_text("// mine\n")
    (out / "sm_90a/gone/notes.txt").write_text("mine\n")
    (out / "sm_90a/gone/.hidden").write_text("mine\n")
    orphans = [v for v in check_generated([kernel], out) if v.verdict == "orphan"]
    assert [(v.path.name, v.prunable) for v in orphans] == [
        ("gone.cu", False),
        ("gone.json", False),  # stays while it is needed to recognise the edited file
        ("gone_barriers.h", True),
        ("gone_device.cuh", True),
        ("notes.txt", False),
    ]
    assert {v.kernel for v in orphans} == {"sm_90a/gone"}
    assert "changed since" in orphans[0].reason
    assert "no manifest records it" in orphans[4].reason


def test_an_intact_orphan_is_prunable_with_its_manifest(render_small, out: Path) -> None:
    write_kernel(render_small(OTHER, "gone"), out)
    orphans = check_generated([render_small()], out)[4:]
    assert {v.path.name for v in orphans if v.prunable} == {
        "gone.cu",
        "gone.json",
        "gone_barriers.h",
        "gone_device.cuh",
    }


def test_a_file_too_many_in_a_current_kernels_folder_is_an_orphan(render_small, out: Path) -> None:
    write_kernel(render_small(), out)
    (out / "sm_90a/small/small_old.h").write_text("x")
    verdicts = check_generated([render_small()], out, are_all=False)
    assert by_name(verdicts)["small_old.h"] == "orphan"
    assert not verdicts[-1].prunable


def test_a_folder_of_an_arch_without_configs_is_an_orphan(render_small, out: Path) -> None:
    (out / "sm_80/old").mkdir(parents=True)
    (out / "sm_80/old/old.cu").write_text("x")
    verdicts = check_generated([render_small()], out)
    assert [(v.kernel, v.verdict) for v in verdicts[4:]] == [("sm_80/old", "orphan")]


def test_of_other_kernels_some_say_nothing(render_small, out: Path) -> None:
    kernel = render_small()
    write_kernel(kernel, out)
    write_kernel(render_small(OTHER, "gone"), out)
    (out / "sm_100a/unknown").mkdir(parents=True)
    (out / "sm_100a/unknown/x.cu").write_text("x")
    for are_all, kernels in (False, set()), (True, {"sm_90a/gone", "sm_100a/unknown"}):
        orphans = check_generated([kernel], out, are_all)[len(kernel.files) :]
        assert {orphan.kernel for orphan in orphans} == kernels


def test_folders_that_are_no_kernels_are_left_alone(render_small, out: Path) -> None:
    (out / "docs/figures").mkdir(parents=True)
    (out / "docs/figures/a.png").write_text("x")
    (out / "sm_90a").mkdir()
    (out / "sm_90a/README.md").write_text("x")
    assert len(check_generated([render_small()], out)) == 4


def test_diff_goes_from_disk_to_rendered(render_small, write_template, out: Path) -> None:
    write_kernel(render_small(), out)
    write_template("device/rings/barriers.h.j2", "// new\n")
    verdict = kernel_verdicts(render_small(), out)[1]
    name = f"{out / 'sm_90a/small/small_barriers.h'}"
    assert verdict.diff() == (
        f"--- {name} (on disk)\n+++ {name} (rendered)\n@@ -1 +1 @@\n-// 2 stages\n+// new\n"
    )


def test_diff_of_a_missing_file_and_of_one_without_last_newline(render_small, out: Path) -> None:
    kernel = render_small()
    missing = kernel_verdicts(kernel, out)[0].diff()
    assert missing.startswith("--- /dev/null\n")
    assert missing.endswith("+// small: depth 128\n")
    write_kernel(kernel, out)
    (out / "sm_90a/small/small.cu").write_bytes(b"\xff")
    diff = kernel_verdicts(kernel, out)[0].diff()
    assert "-\ufffd\n\\ No newline at end of file\n" in diff


def test_a_folder_in_a_files_place_is_reported(render_small, out: Path) -> None:
    (out / "sm_90a/small/small.cu").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot read"):
        check_generated([render_small()], out)
