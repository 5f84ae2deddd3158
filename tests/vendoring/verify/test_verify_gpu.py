"""``verify_folder`` with the real driver: the folder's library on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.vendoring.verify import verify_folder
from tests.vendoring.verify.builds import PREFIX, SEED, Edit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fa4gen.runtime.device import DeviceInfo
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.gpu("sm_90a")


def test_what_the_gpu_runs_ran_there_and_the_rest_is_emulated(
    builds: Builds, gpu: DeviceInfo
) -> None:
    found = {
        one.symbol: one for one in verify_folder(builds.folder, seed=SEED, patterns=("size/1*",))
    }
    for name in ("softmax", "product"):
        one = found[f"{PREFIX}_{name}"]
        assert one.passed
        assert one.verdict.proof == f"ran on {gpu.name}"
        assert one.verdict.num_cases >= 1
        assert one.cubin == "as compiled from kernels/"
    for name in ("dynamic", "scaled"):
        one = found[f"{PREFIX}_{name}"]
        assert one.passed
        assert one.verdict.proof == "emulated"


def test_parts_are_merged_on_the_gpu(build: Callable[[str], Builds], gpu: DeviceInfo) -> None:
    found = {one.symbol: one for one in verify_folder(build("merging").folder, seed=SEED)}
    for name in ("merged", "merged_floats"):
        one = found[f"{PREFIX}_{name}"]
        assert one.passed
        assert one.verdict.proof == f"ran on {gpu.name}"


@pytest.mark.parametrize(
    ("symbol", "edit", "expected"),
    [
        ("softmax", Edit("src/launcher.c", "(float)(scale * LOG2_E)", "(float)scale"), "numbers"),
        (
            "softmax",
            Edit("src/launcher.c", "args->out.row_stride;", "args->out.row_stride + 8;"),
            "unwritten",
        ),
        ("product", Edit("src/launcher.c", "(float)args->alpha;", "1.5f;"), "numbers"),
    ],
)
def test_a_wrong_launcher_is_refused_on_the_gpu(
    folder: Path, gpu: DeviceInfo, symbol: str, edit: Edit, expected: str
) -> None:
    del gpu
    for manifest in (folder / "kernels").glob("*.json"):
        if manifest.stem != f"{PREFIX}_{symbol}":
            manifest.unlink()
    place = folder / edit.path
    place.write_text(edit.of(place.read_text()))
    (verdict,) = verify_folder(folder, seed=SEED, patterns=("size/6*", "size/33*"))
    assert not verdict.passed
    assert expected in {one.check for case in verdict.verdict.cases for one in case.failures}
