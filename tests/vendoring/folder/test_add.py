from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.render.manifest import sha256
from fa4gen.vendoring.lock import Lock, read_lock
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored, files_in

pytestmark = pytest.mark.compile


def vendor(*arguments: str) -> int:
    return main(["vendor", *arguments])


def test_a_folder_holds_what_its_lock_says(vendored: Vendored) -> None:
    files = vendored.files()
    lock = json.loads(files.pop("fa4gen.lock"))
    assert lock["files"] == {path: sha256(data) for path, data in files.items()}
    assert {
        "LICENSE",
        "include/acme.h",
        f"kernels/acme_{CONFIG}.cu",
    } <= set(files)
    (kernel,) = lock["kernels"]
    assert (kernel["name"], kernel["symbol"]) == (CONFIG, f"acme_{CONFIG}")
    assert kernel["source"] == f"attention/sm_90a/{CONFIG}"
    assert [proof["level"] for proof in kernel["proofs"]] == ["compiled"]
    assert lock["license"] == "Apache-2.0"


def test_the_same_request_writes_the_same_bytes(vendored: Vendored) -> None:
    assert vendor("add", CONFIG, "--into", "again", "--prefix", "acme") == 0
    assert files_in(Path("again")) == vendored.files()


def test_writing_again_touches_nothing(vendored: Vendored) -> None:
    before = {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")}
    assert vendor("add", CONFIG, "--into", "attn", "--prefix", "acme") == 0
    assert {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")} == before


def lock_of(folder: Path) -> Lock:
    return read_lock(folder)


def test_a_kernel_is_added_to_those_that_are_there(vendored: Vendored) -> None:
    (vendored.folder / "notes.txt").write_text("mine")
    before = vendored.files()
    assert vendor("add", OTHER, "--into", "attn", "--adapter", "python") == 0
    files = vendored.files()
    assert before.keys() < files.keys()
    assert f"kernels/acme_{OTHER}.cu" in files
    own = [f"kernels/acme_{CONFIG}.cu", f"cubins/acme_{CONFIG}.c", "notes.txt"]
    assert {path: files[path] for path in own} == {path: before[path] for path in own}
    lock = lock_of(vendored.folder)
    assert [kernel.name for kernel in lock.kernels] == [CONFIG, OTHER]
    assert lock.adapters == ("python",)
    assert vendor("check", "attn") == 3  # for the notes alone
    (vendored.folder / "notes.txt").unlink()
    assert vendor("check", "attn") == 0


def test_a_kernel_of_the_same_name_is_replaced_in_its_place(vendored: Vendored) -> None:
    assert vendor("add", OTHER, "--into", "attn") == 0
    Path("mine.yaml").write_text(f"extends: {CONFIG}\nname: {CONFIG}\nlse: false\n")
    assert vendor("add", "mine.yaml", "--into", "attn") == 0
    first, second = lock_of(vendored.folder).kernels
    assert (first.name, first.config["lse"], first.source) == (CONFIG, False, "mine.yaml")
    assert second.name == OTHER


def test_only_what_is_named_is_removed(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vendor("add", OTHER, "--into", "attn", "--adapter", "python") == 0
    before = vendored.files()
    assert vendor("add", "--into", "attn", "--remove", "pyton") == 2
    assert "--remove pyton: the folder has no kernel or adapter of this name" in (
        error := capsys.readouterr().err
    )
    assert "Did you mean python?" in error
    assert vendored.files() == before
    assert vendor("update", "attn", "--remove", CONFIG, "--remove", "python") == 0
    files = vendored.files()
    assert not [path for path in files if CONFIG in path or path.startswith("adapters/")]
    assert [kernel.name for kernel in lock_of(vendored.folder).kernels] == [OTHER]
    assert vendor("update", "attn", "--remove", OTHER) == 2
    assert "no kernel would be left" in capsys.readouterr().err
    assert vendored.files() == files


def test_edits_of_what_is_removed_are_not_lost(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    """The C file of an edited kernel would be compiled with the others."""
    assert vendor("add", OTHER, "--into", "attn") == 0
    source, cubin = f"kernels/acme_{CONFIG}.cu", f"cubins/acme_{CONFIG}.c"
    for path in (source, cubin):
        place = vendored.folder / path
        place.write_text(place.read_text() + "// mine\n")
    before = vendored.files()
    capsys.readouterr()
    assert vendor("update", "attn", "--remove", CONFIG) == 3
    assert f"attn/{cubin}: not overwritten: changed since" in capsys.readouterr().err
    assert vendored.files() == before
    assert vendor("update", "attn", "--remove", CONFIG, "--force") == 0
    files = vendored.files()
    assert cubin not in files
    assert files[source] == before[source]


def test_another_prefix_is_refused(vendored: Vendored, capsys: pytest.CaptureFixture[str]) -> None:
    before = vendored.files()
    assert vendor("add", OTHER, "--into", "attn", "--prefix", "other") == 2
    assert "begin with acme, and other is asked for" in capsys.readouterr().err
    assert vendored.files() == before


def test_a_new_folder_needs_a_prefix(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vendor("add", CONFIG, "--into", "new") == 2
    assert "--prefix is missing" in capsys.readouterr().err
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", CONFIG], "give the folder with --into DIR"),
        (["add", "--into", "attn"], "`fa4gen vendor update` writes what"),
    ],
)
def test_calls_that_say_too_little(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vendor(*arguments) == 2
    assert said in capsys.readouterr().err


def test_an_edited_file_of_the_library_stops_everything(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    vendored.edit("src/launcher.c", "/* ---- Statuses in words", "/* mine */\n/* ---- Statuses")
    before = vendored.files()
    capsys.readouterr()
    assert vendor("add", OTHER, "--into", "attn") == 3
    assert vendored.files() == before
    message = capsys.readouterr().err
    assert "attn/src/launcher.c: not overwritten: changed since fa4gen wrote it" in message
    assert "--force writes today's" in message
    assert vendor("add", OTHER, "--into", "attn", "--force") == 0
    assert b"mine" not in vendored.files()["src/launcher.c"]


def test_a_file_of_the_users_is_in_the_way(
    vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"kernels/acme_{OTHER}.cu"
    (vendored.folder / path).write_text("mine")
    before = vendored.files()
    assert vendor("add", OTHER, "--into", "attn") == 3
    assert f"attn/{path}: not overwritten: not written by fa4gen" in capsys.readouterr().err
    assert vendored.files() == before


def test_a_dry_run_writes_nothing(vendored: Vendored, capsys: pytest.CaptureFixture[str]) -> None:
    before = vendored.files()
    arguments = (CONFIG, OTHER, "--prefix", "acme", "--dry-run")
    assert vendor("add", *arguments, "--into", "attn") == 0
    assert vendor("add", *arguments, "--into", "new/folder") == 0
    assert vendored.files() == before
    assert not Path("new").exists()
    assert f"created  attn/kernels/acme_{OTHER}.cu" in capsys.readouterr().out


def test_a_folder_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "src/attention.c"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    assert vendor("add", CONFIG, "--into", ".", "--prefix", "acme") == 2
    assert "not empty, and not one of fa4gen's: it has no fa4gen.lock" in capsys.readouterr().err
    assert files_in(tmp_path) == {"src/attention.c": b"theirs"}
    assert vendor("add", CONFIG, "--into", "src/attention.c", "--prefix", "acme") == 2
    assert "src/attention.c: not a folder" in capsys.readouterr().err


def test_a_folder_with_nothing_but_version_control_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attn/.git").mkdir(parents=True)
    (tmp_path / "attn/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert vendor("add", CONFIG, "--into", "attn", "--prefix", "acme") == 0


@pytest.mark.parametrize("prefix", ["1st", "Acme", "a-b", "a__b", "a_", "", "int main", "x" * 33])
def test_a_prefix_that_begins_no_c_name_is_refused(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vendor("add", CONFIG, "--into", "attn", "--prefix", prefix) == 2
    assert "--prefix: expected the beginning of C names" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prefix", ["con", "nul", "com1"])
def test_a_prefix_that_is_a_device_of_windows_is_refused(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vendor("add", CONFIG, "--into", "attn", "--prefix", prefix) == 2
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
    assert vendor("add", CONFIG, "mine.yaml", "--into", "attn", "--prefix", "acme") == 2
    assert f"2 configs are called {CONFIG}: " in capsys.readouterr().err
    assert not Path("attn").exists()


@pytest.mark.parametrize("path", ["kernels", "include/acme.h", "fa4gen.lock"])
def test_nothing_is_written_through_a_symbolic_link(
    path: str, vendored: Vendored, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = Path("outside").absolute()
    place = vendored.folder / path
    place.rename(outside)
    place.symlink_to(outside)
    before = files_in(outside) if outside.is_dir() else outside.read_bytes()
    assert vendor("add", OTHER, "--into", "attn", "--prefix", "acme", "--force") == 2
    assert "symbolic link" in capsys.readouterr().err
    assert (files_in(outside) if outside.is_dir() else outside.read_bytes()) == before
    assert place.is_symlink()
