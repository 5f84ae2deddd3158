from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.config.yaml_positions import read_document
from fa4gen.render.manifest import sha256
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored, files_in

pytestmark = pytest.mark.compile

SOURCE, CUBIN = f"kernels/acme_{CONFIG}.cu", f"cubins/acme_{CONFIG}.c"
NEW = ("add", CONFIG, "--into", "new", "--prefix")


def test_a_folder_holds_what_its_lock_says(vendored: Vendored) -> None:
    files = vendored.files()
    lock = json.loads(files.pop("fa4gen.lock"))
    assert lock["files"] == {path: sha256(data) for path, data in files.items()}
    assert {"LICENSE", "include/acme.h", SOURCE} <= set(files)
    (kernel,) = lock["kernels"]
    assert (kernel["name"], kernel["symbol"]) == (CONFIG, f"acme_{CONFIG}")
    assert kernel["source"] == f"attention/sm_90a/{CONFIG}"
    assert [proof["level"] for proof in kernel["proofs"]] == ["compiled"]
    assert lock["license"] == "Apache-2.0"


def test_the_same_request_writes_the_same_bytes_and_nothing_again(vendored: Vendored) -> None:
    assert vendored.run("add", CONFIG, "--into", "again", "--prefix", "acme").status == 0
    assert files_in(Path("again")) == vendored.files()
    before = {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")}
    assert vendored.run("add", CONFIG, "--into", "attn", "--prefix", "acme").status == 0
    assert {path: path.stat().st_mtime_ns for path in vendored.folder.rglob("*")} == before


def test_a_kernel_is_added_to_those_that_are_there(vendored: Vendored) -> None:
    (vendored.folder / "notes.txt").write_text("mine")
    before = vendored.files()
    assert vendored.run("add", OTHER, "--into", "attn", "--adapter", "python").status == 0
    files = vendored.files()
    assert before.keys() < files.keys()
    assert f"kernels/acme_{OTHER}.cu" in files
    assert all(files[path] == before[path] for path in (SOURCE, CUBIN, "notes.txt"))
    assert [kernel.name for kernel in vendored.lock().kernels] == [CONFIG, OTHER]
    assert vendored.lock().adapters == ("python",)
    assert vendored.run("check", "attn").status == 3  # for the notes alone
    (vendored.folder / "notes.txt").unlink()
    assert vendored.run("check", "attn").status == 0


def test_a_kernel_of_the_same_name_is_replaced_in_its_place(vendored: Vendored) -> None:
    assert vendored.run("add", OTHER, "--into", "attn").status == 0
    Path("mine.yaml").write_text(f"extends: {CONFIG}\nname: {CONFIG}\nlse: false\n")
    assert vendored.run("add", "mine.yaml", "--into", "attn").status == 0
    first, second = vendored.lock().kernels
    assert (first.name, first.config["lse"], first.source) == (CONFIG, False, "mine.yaml")
    assert second.name == OTHER


def test_only_what_is_named_is_removed(vendored: Vendored) -> None:
    assert vendored.run("add", OTHER, "--into", "attn", "--adapter", "python").status == 0
    error = vendored.refused("add", "--into", "attn", "--remove", "pyton")
    assert "--remove pyton: the folder has no kernel or adapter of this name" in error
    assert "Did you mean python?" in error
    assert vendored.run("update", "attn", "--remove", CONFIG, "--remove", "python").status == 0
    files = vendored.files()
    assert not [path for path in files if CONFIG in path or path.startswith("adapters/")]
    assert [kernel.name for kernel in vendored.lock().kernels] == [OTHER]
    assert "no kernel would be left" in vendored.refused("update", "attn", "--remove", OTHER)


def test_edits_of_what_is_removed_are_not_lost(vendored: Vendored) -> None:
    """The C file of an edited kernel would be compiled with the others."""
    assert vendored.run("add", OTHER, "--into", "attn").status == 0
    for path in (SOURCE, CUBIN):
        vendored.append(path)
    before = vendored.files()
    remove = ("update", "attn", "--remove", CONFIG)
    assert f"attn/{CUBIN}: not overwritten: changed since" in vendored.refused(*remove, status=3)
    assert vendored.run(*remove, "--force").status == 0
    files = vendored.files()
    assert CUBIN not in files
    assert files[SOURCE] == before[SOURCE]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", CONFIG), "give the folder with --into DIR"),
        (("add", "--into", "attn"), "`fa4gen vendor update` writes what"),
        (("add", CONFIG, "--into", "new"), "--prefix is missing"),
        (
            ("add", OTHER, "--into", "attn", "--prefix", "other"),
            "begin with acme, and other is asked for",
        ),
        *(
            ((*NEW, prefix), "--prefix: expected the beginning of C names")
            for prefix in ("1st", "Acme", "a-b", "a__b", "a_", "", "int main", "x" * 33)
        ),
    ],
)
def test_calls_that_are_refused(vendored: Vendored, words: tuple[str, ...], said: str) -> None:
    assert said in vendored.refused(*words)


def test_operands_of_e5m2_are_refused(vendored: Vendored, tmp_path: Path) -> None:
    config = tmp_path / "gradient.yaml"
    config.write_text(
        "kernel: gemm\narch: sm_90a\ndtype: fp8_e4m3\nb_dtype: fp8_e5m2\n", encoding="utf-8"
    )
    message = vendored.refused("add", str(config), "--into", "new", "--prefix", "acme")
    assert "b_dtype: vendored folders take no operands of fp8_e5m2 yet" in message


def test_an_edited_file_of_the_library_stops_everything(vendored: Vendored) -> None:
    vendored.append("src/launcher.c")
    message = vendored.refused("add", OTHER, "--into", "attn", status=3)
    assert "attn/src/launcher.c: not overwritten: changed since fa4gen wrote it" in message
    assert "--force writes today's" in message
    assert vendored.run("add", OTHER, "--into", "attn", "--force").status == 0
    assert b"mine" not in vendored.files()["src/launcher.c"]


def test_a_file_of_the_users_is_in_the_way(vendored: Vendored) -> None:
    path = f"kernels/acme_{OTHER}.cu"
    (vendored.folder / path).write_text("mine")
    message = vendored.refused("add", OTHER, "--into", "attn", status=3)
    assert f"attn/{path}: not overwritten: not written by fa4gen" in message


def test_a_dry_run_writes_nothing(vendored: Vendored) -> None:
    before = files_in(Path())
    words = ("add", CONFIG, OTHER, "--prefix", "acme", "--dry-run")
    ran = vendored.run(*words, "--into", "attn")
    assert ran.status == vendored.run(*words, "--into", "new/folder").status == 0
    assert files_in(Path()) == before
    assert not Path("new").exists()
    assert f"created  attn/kernels/acme_{OTHER}.cu" in ran.out


def test_a_folder_of_others_is_refused(vendored: Vendored) -> None:
    theirs = Path("theirs/attention.c")
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    error = vendored.refused("add", CONFIG, "--into", "theirs", "--prefix", "acme")
    assert "not empty, and not one of fa4gen's: it has no fa4gen.lock" in error
    error = vendored.refused("add", CONFIG, "--into", str(theirs), "--prefix", "acme")
    assert "theirs/attention.c: not a folder" in error


def test_a_folder_with_nothing_but_version_control_is_free(vendored: Vendored) -> None:
    Path("new/.git").mkdir(parents=True)
    Path("new/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert vendored.run(*NEW, "acme").status == 0


def test_two_configs_of_one_name_are_refused(vendored: Vendored) -> None:
    Path("mine.yaml").write_text(
        f"kernel: attention\narch: sm_90a\ndtype: fp16\ndepth: 64\nname: {CONFIG}\n"
    )
    error = vendored.refused("add", CONFIG, "mine.yaml", "--into", "new", "--prefix", "acme")
    assert f"2 configs are called {CONFIG}: " in error


@pytest.mark.parametrize("path", ["kernels", "include/acme.h", "fa4gen.lock"])
def test_nothing_is_written_through_a_symbolic_link(path: str, vendored: Vendored) -> None:
    outside = Path("outside").absolute()
    place = vendored.folder / path
    place.rename(outside)
    place.symlink_to(outside)
    words = ("add", OTHER, "--into", "attn", "--prefix", "acme", "--force")
    assert "symbolic link" in vendored.refused(*words)
    assert place.is_symlink()


def test_the_lock_needs_neither_a_base_nor_an_option(vendored: Vendored) -> None:
    config = Path("mine.yaml")
    config.write_text(f"extends: {CONFIG}\nlse: false\n")
    assert vendored.run("add", "mine.yaml", "--set", "mask=causal", *NEW[2:], "acme").status == 0
    config.unlink()
    assert vendored.run("check", "new").status == 0
    (kernel,) = json.loads(Path("new/fa4gen.lock").read_text())["kernels"]
    text = read_document(kernel["config_text"], "").value
    assert (text["mask"], text["lse"], text["depth"]) == ("causal", False, 64)
    assert config_from_data(text, "mine").name == "mine"
