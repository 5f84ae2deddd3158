"""``fa4gen vendor`` and its actions by the project's own file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.project import read_project
from fa4gen.vendoring.kernels import load_configs, render_kernels
from tests.vendoring.folder.conftest import CONFIG, OTHER, Vendored, files_in

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
pytestmark = pytest.mark.compile

MINE = "kernel: gemm\narch: sm_90a\ndtype: bf16\n"


@pytest.fixture
def project(vendored: Vendored, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that vendors two folders, one of them written; the current folder is inside."""
    root = Path.cwd()
    monkeypatch.setattr(Path, "home", lambda: root)
    Path("fa4gen.toml").write_text(
        f'configs = ["{CONFIG}"]\n'
        '[[vendor]]\ninto = "attn"\nprefix = "acme"\nallow = ["mine/*.c", "README.md"]\n'
        f'[[vendor]]\ninto = "third_party/gemm"\nprefix = "other"\nconfigs = ["{OTHER}"]\n'
    )
    (root / "inside").mkdir()
    monkeypatch.chdir(root / "inside")
    return root


def test_no_arguments_are_needed(project: Path, vendored: Vendored) -> None:
    before = files_in(project / "attn")
    assert vendored.run("update").status == 0
    assert files_in(project / "attn") == before
    lock = json.loads((project / "third_party/gemm/fa4gen.lock").read_text())
    assert [kernel["symbol"] for kernel in lock["kernels"]] == [f"other_{OTHER}"]
    assert vendored.run("check").status == 0
    assert vendored.run("update").status == 0
    everything = files_in(project)
    folders = json.loads(vendored.run("check", "--format", "json").out)["folders"]
    assert [Path(f["folder"]).name for f in folders] == ["attn", "gemm"]
    assert files_in(project) == everything
    # both folders are found, and the pattern names no case of theirs
    vendored.refused("verify", "--seed", "3", "--cases", "no_such_case")


def test_check_says_what_is_not_there_yet(project: Path, vendored: Vendored) -> None:
    status, _, error = vendored.run("check")
    assert status == 3
    assert "third_party/gemm: the project names this folder, and it is not there yet" in error
    assert vendored.run("update").status == 0  # writes it
    assert vendored.run("check").status == 0


def test_a_folder_is_chosen_by_its_name(project: Path, vendored: Vendored) -> None:
    assert vendored.run("update", "../third_party/gemm").status == 0
    assert (project / "third_party/gemm/fa4gen.lock").exists()
    assert vendored.run("update", "../elsewhere").status == 2


def test_what_the_file_names_no_more_stays_until_it_is_removed(
    project: Path, vendored: Vendored
) -> None:
    assert vendored.run("add", OTHER, "--into", "../attn", "--adapter", "python").status == 0
    status, out, _ = vendored.run("check", "../attn")
    assert status == 3
    assert f"{OTHER} is there and not asked for" in out
    assert f"fa4gen vendor update ../attn --remove {OTHER} --remove python" in out
    assert vendored.run("update", "../attn").status == 0
    assert (project / f"attn/kernels/acme_{OTHER}.cu").exists()
    assert vendored.run("update", "../attn", "--remove", OTHER, "--remove", "python").status == 0
    assert not (project / f"attn/kernels/acme_{OTHER}.cu").exists()
    assert not (project / "attn/adapters").exists()
    assert vendored.run("check", "../attn").status == 0


def test_what_the_file_asks_for_is_checked_and_brought_about(
    project: Path, vendored: Vendored
) -> None:
    path = project / "fa4gen.toml"
    (project / "kernels").mkdir()
    (project / "kernels/my_kernel.yaml").write_text(MINE)
    path.write_text(
        '[[vendor]]\ninto = "attn"\nprefix = "acme"\n'
        f'configs = ["kernels/*.yaml", "{CONFIG}"]\nadapters = ["python"]\n'
    )
    status, out, _ = vendored.run("check", "../attn", "--format", "json")
    assert status == 3
    (folder,) = json.loads(out)["folders"]
    assert folder["request"] == [
        "the adapter python is asked for and not there",
        "my_kernel is asked for and not there",
    ]
    assert vendored.run("update", "../attn").status == 0
    lock = json.loads((project / "attn/fa4gen.lock").read_text())
    assert [kernel["name"] for kernel in lock["kernels"]] == ["my_kernel", CONFIG]
    assert lock["kernels"][0]["source"] == "my_kernel.yaml"
    assert vendored.run("check").status == 0
    (project / "kernels/my_kernel.yaml").write_text(MINE.replace("bf16", "fp16"))
    assert "the config of my_kernel changed" in vendored.run("check").out


def test_what_the_project_allows_is_no_finding(project: Path, vendored: Vendored) -> None:
    (project / "attn/mine/deep").mkdir(parents=True)
    (project / "attn/mine/deep/more.c").write_text("mine")
    (project / "attn/README.md").write_text("mine")
    status, out, _ = vendored.run("check", "../attn")
    assert status == 0
    assert "2 allowed" in out
    (project / "attn/mine/other.txt").write_text("mine")
    status, out, _ = vendored.run("check", "../attn")
    assert status == 3
    assert "foreign  ../attn/mine " in out


def test_a_config_that_is_not_there_names_folder_and_file(
    project: Path, vendored: Vendored
) -> None:
    path = project / "fa4gen.toml"
    path.write_text(path.read_text().replace(f'"{OTHER}"', '"nowhere.yaml"'))
    error = vendored.refused("update")
    assert "no such file" in error
    assert "third_party/gemm" in error
    assert "fa4gen.toml" in error


@pytest.mark.parametrize("action", ["check", "update", "verify", "recompile"])
def test_without_a_project_it_says_what_is_missing(
    action: str, vendored: Vendored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    error = vendored.refused(action)
    assert "no folder is given, and there is no fa4gen.toml or [tool.fa4gen] here or above" in error
    (tmp_path / "fa4gen.toml").write_text("")
    assert "fa4gen.toml: the project vendors nothing" in vendored.refused(action)


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/fa4gen.toml")), ids=lambda path: path.parent.name
)
def test_the_examples_of_this_repository_are_projects(path: Path) -> None:
    project = read_project(path)
    assert project is not None
    assert project.vendored
    for entry in project.vendored:
        loaded = load_configs(find_configs(entry.configs, project.root))
        assert render_kernels(loaded, entry.prefix)
