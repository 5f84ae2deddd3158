from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.render.manifest import sha256
from tests.vendor.folder.conftest import CONFIG, OTHER, Vendored, files_in

pytestmark = pytest.mark.compile


def vendor(*arguments: str) -> int:
    return main(["vendor", *arguments])


def test_a_folder_holds_what_its_lock_says(vendored: Vendored) -> None:
    files = vendored.files()
    lock = json.loads(files.pop("fa4gen.lock"))
    assert lock["files"] == {path: sha256(data) for path, data in files.items()}
    assert {
        "LICENSE",
        ".fa4gen/originals.zip",
        "include/acme.h",
        f"kernels/acme_{CONFIG}.cu",
    } <= set(files)
    (kernel,) = lock["kernels"]
    assert (kernel["name"], kernel["symbol"]) == (CONFIG, f"acme_{CONFIG}")
    assert kernel["source"] == f"attention/sm_90a/{CONFIG}"
    assert [proof["level"] for proof in kernel["proofs"]] == ["compiled"]
    assert lock["license"] == "Apache-2.0"


def test_the_same_request_writes_the_same_bytes(vendored: Vendored) -> None:
    assert vendor(CONFIG, "--into", "again", "--prefix", "acme") == 0
    assert files_in(Path("again")) == vendored.files()


def test_writing_again_touches_nothing(vendored: Vendored) -> None:
    before = {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")}
    assert vendor(CONFIG, "--into", "attn", "--prefix", "acme") == 0
    assert {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")} == before


def test_another_request_removes_the_files_of_the_old_one(vendored: Vendored) -> None:
    (vendored.folder / "notes.txt").write_text("mine")
    assert vendor(OTHER, "--into", "attn", "--prefix", "other") == 0
    files = vendored.files()
    assert files.pop("notes.txt") == b"mine"
    assert not [path for path in files if "acme" in path or CONFIG in path]
    assert f"kernels/other_{OTHER}.cu" in files


def test_an_edited_file_is_not_overwritten_without_force(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    vendored.edit("include/acme.h", "#define ACME_H_", "#define ACME_H_ /* mine */")
    before = vendored.files()
    capsys.readouterr()
    assert vendor(CONFIG, OTHER, "--into", "attn", "--prefix", "acme") == 3
    assert vendored.files() == before
    message = capsys.readouterr().err
    assert "attn/include/acme.h: not overwritten: changed since fa4gen wrote it" in message
    assert "--update attn" in message
    assert vendor(CONFIG, OTHER, "--into", "attn", "--prefix", "acme", "--force") == 0
    assert b"mine" not in vendored.files()["include/acme.h"]


def test_a_dry_run_writes_nothing(vendored: Vendored, capsys: pytest.CaptureFixture[str]) -> None:
    before = vendored.files()
    arguments = (CONFIG, OTHER, "--prefix", "acme", "--dry-run")
    assert vendor(*arguments, "--into", "attn") == 0
    assert vendor(*arguments, "--into", "new/folder") == 0
    assert vendored.files() == before
    assert not Path("new").exists()
    assert f"created  attn/kernels/acme_{OTHER}.cu" in capsys.readouterr().out


def test_an_edited_c_file_that_would_go_is_not_lost(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    """Left beside what is written it would be compiled with it."""
    path = f"cubins/acme_{CONFIG}.c"
    (vendored.folder / path).write_text("mine")
    before = vendored.files()
    assert vendor(OTHER, "--into", "attn", "--prefix", "acme") == 3
    assert f"attn/{path}: not overwritten: changed" in capsys.readouterr().err
    assert vendored.files() == before
    assert vendor(OTHER, "--into", "attn", "--prefix", "acme", "--force") == 0
    assert path not in vendored.files()


def test_a_folder_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "src/attention.c"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    assert vendor(CONFIG, "--into", ".", "--prefix", "acme") == 2
    assert "not empty, and not one of fa4gen's: it has no fa4gen.lock" in capsys.readouterr().err
    assert files_in(tmp_path) == {"src/attention.c": b"theirs"}
    assert vendor(CONFIG, "--into", "src/attention.c", "--prefix", "acme") == 2
    assert "src/attention.c: not a folder" in capsys.readouterr().err


def test_a_folder_with_nothing_but_version_control_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attn/.git").mkdir(parents=True)
    (tmp_path / "attn/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert vendor(CONFIG, "--into", "attn", "--prefix", "acme") == 0


@pytest.mark.parametrize("prefix", ["1st", "Acme", "a-b", "a__b", "a_", "", "int main", "x" * 33])
def test_a_prefix_that_begins_no_c_name_is_refused(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vendor(CONFIG, "--into", "attn", "--prefix", prefix) == 2
    assert "--prefix: expected the beginning of C names" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prefix", ["con", "nul", "com1"])
def test_a_prefix_that_is_a_device_of_windows_is_refused(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vendor(CONFIG, "--into", "attn", "--prefix", prefix) == 2
    error = capsys.readouterr().err
    assert f"--prefix: {prefix} is the name of a device on Windows" in error
    assert f"--prefix {prefix}_kernels" in error
    assert list(tmp_path.iterdir()) == []


def test_two_configs_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(
        f"kernel: attention\narch: sm_90a\ndtype: fp16\ndepth: 64\nname: {CONFIG}\n"
    )
    assert vendor(CONFIG, "mine.yaml", "--into", "attn", "--prefix", "acme") == 2
    assert f"2 configs are called {CONFIG}: " in capsys.readouterr().err
    assert not Path("attn").exists()


@pytest.mark.parametrize("path", ["kernels", "include/acme.h", "fa4gen.lock", ".fa4gen"])
def test_nothing_is_written_through_a_symbolic_link(
    path: str, vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = Path("outside").absolute()
    place = vendored.folder / path
    place.rename(outside)
    place.symlink_to(outside)
    before = files_in(outside) if outside.is_dir() else outside.read_bytes()
    assert vendor(OTHER, "--into", "attn", "--prefix", "acme", "--force") == 2
    assert "symbolic link" in capsys.readouterr().err
    assert (files_in(outside) if outside.is_dir() else outside.read_bytes()) == before
    assert place.is_symlink()
