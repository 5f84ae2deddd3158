from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.resources import data_root
from tests.vendoring.folder.conftest import CONFIG, Vendored

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.compile


def check(vendored: Vendored, *arguments: str) -> tuple[int, dict]:
    ran = vendored.run("check", "attn", "--format", "json", *arguments)
    (folder,) = json.loads(ran.out)["folders"]
    return ran.status, folder


def wrong(folder: dict) -> dict[str, str]:
    return {f["path"]: f["verdict"] for f in folder["files"] if f["verdict"] != "current"}


def test_a_folder_as_written_is_current_and_check_writes_nothing(vendored: Vendored) -> None:
    before = vendored.files()
    status, folder = check(vendored)
    assert (status, folder["current"], wrong(folder)) == (0, True, {})
    assert folder["counts"]["current"] == len(before) - 1
    assert vendored.files() == before


def edited(place: Path) -> None:
    place.write_text(place.read_text().replace("#define ACME_H_", "#define ACME_H_ 1"))


def edited_line_ends(place: Path) -> None:
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))


def edited_image(place: Path) -> None:
    place.write_text(place.read_text().replace("127,69,", "127,70,", 1))


def edited_to_a_link(place: Path) -> None:
    place.rename("outside.c")
    place.symlink_to(Path("outside.c").absolute())


def foreign(place: Path) -> None:
    place.write_text("mine")


def foreign_folder(place: Path) -> None:
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/x.o").write_text("x")
    (place / "y.o").write_text("y")
    (place.parent / "empty").mkdir()


HEADER, CUBIN = "include/acme.h", f"cubins/acme_{CONFIG}.c"


@pytest.mark.parametrize(
    ("spoil", "path"),
    [
        (edited, HEADER),
        (edited_line_ends, "src/launcher.c"),
        (edited_image, CUBIN),
        (edited_to_a_link, "src/launcher.c"),
        (Path.unlink, "src/launcher.c"),
        (foreign, "src/mine.c"),
        (foreign_folder, "build"),
    ],
)
def test_what_is_not_current_is_named_alone(
    vendored: Vendored, spoil: Callable[[Path], object], path: str
) -> None:
    spoil(vendored.folder / path)
    status, folder = check(vendored)
    assert (status, folder["current"]) == (3, False)
    verdict = "missing" if spoil is Path.unlink else spoil.__name__.split("_")[0]
    assert wrong(folder) == {f"attn/{path}": verdict}
    assert folder["fix"]


def test_the_diff_of_an_edit_shows_it_and_no_more(vendored: Vendored) -> None:
    edited(vendored.folder / HEADER)
    edited_image(vendored.folder / CUBIN)
    _, folder = check(vendored, "--diff")
    diffs = {f["path"]: f["diff"] for f in folder["files"] if f["verdict"] != "current"}
    assert diffs[f"attn/{CUBIN}"] == ""  # what it was is not known any more
    changed = [x for x in diffs["attn/include/acme.h"].splitlines() if x[:1] in "+-"]
    assert changed[2:] == ["-#define ACME_H_ 1", "+#define ACME_H_"]


def test_machine_code_of_another_source_is_stale(vendored: Vendored) -> None:
    vendored.edit(f"kernels/acme_{CONFIG}_device.cuh", "#pragma once\n", "#pragma once\n\n")
    status, folder = check(vendored)
    assert status == 3
    assert wrong(folder) == {
        f"attn/kernels/acme_{CONFIG}_device.cuh": "edited",
        f"attn/cubins/acme_{CONFIG}.c": "stale",
    }
    reasons = {f["path"]: f["reason"] for f in folder["files"]}
    assert reasons[f"attn/cubins/acme_{CONFIG}.c"] == (
        f"compiled from another acme_{CONFIG}_device.cuh"
    )


def test_stale_files_and_kernels_are_named(vendored: Vendored) -> None:
    for name in ("attention_sm90/kernel.cu.j2", "vendored/src/status.c.j2"):
        path = Path("mine") / name
        path.parent.mkdir(parents=True)
        path.write_text((data_root("templates") / name).read_text() + "// new\n")
    status, folder = check(vendored, "--templates", "mine", "--diff")
    assert status == 3
    assert wrong(folder) == {
        f"attn/kernels/acme_{CONFIG}.cu": "stale",
        f"attn/kernels/acme_{CONFIG}.json": "stale",
        "attn/src/launcher.c": "stale",
    }
    assert [kernel["changes"] for kernel in folder["kernels"]] == [True]
    assert "+// new\n" in next(
        f["diff"] for f in folder["files"] if f["path"].endswith("launcher.c")
    )
    assert folder["fix"] == "fa4gen vendor update attn --templates mine."


def test_another_version_says_so(vendored: Vendored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fa4gen.vendoring.check.__version__", "9.9.9")
    ran = vendored.run("check", "attn")
    assert ran.status == 0
    assert "attn: written by fa4gen 0.1.0" in ran.out


def test_github_annotations_name_file_and_line(vendored: Vendored) -> None:
    (vendored.folder / "src/launcher.c").write_text("mine\n")
    error = vendored.refused("check", "attn", "--format", "github", status=3)
    (line,) = [x for x in error.splitlines() if x.startswith("::")]
    assert line.startswith("::error file=attn/src/launcher.c,line=1,col=1::edited: ")


def test_a_proof_does_not_count_for_other_files(vendored: Vendored) -> None:
    assert check(vendored)[1]["kernels"][0]["proofs_count"] is True
    (vendored.folder / "LICENSE").write_text("mine")  # decides nothing of a run
    assert check(vendored)[1]["kernels"][0]["proofs_count"] is True
    edited(vendored.folder / HEADER)
    assert check(vendored)[1]["kernels"][0]["proofs_count"] is False
