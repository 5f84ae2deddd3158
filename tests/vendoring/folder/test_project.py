"""``fa4gen vendor`` and its actions by the project's own file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fa4gen.cli.main import main
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


def vendor(*arguments: str) -> int:
    return main(["vendor", *arguments])


def test_no_arguments_are_needed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(project / "attn")
    assert vendor("update") == 0
    assert files_in(project / "attn") == before
    lock = json.loads((project / "third_party/gemm/fa4gen.lock").read_text())
    assert [kernel["symbol"] for kernel in lock["kernels"]] == [f"other_{OTHER}"]
    assert vendor("check") == 0
    assert vendor("update") == 0
    everything = files_in(project)
    capsys.readouterr()
    assert vendor("check", "--format", "json") == 0
    folders = json.loads(capsys.readouterr().out)["folders"]
    assert [Path(f["folder"]).name for f in folders] == ["attn", "gemm"]
    assert files_in(project) == everything
    status = vendor("verify", "--seed", "3", "--cases", "no_such_case")
    assert status == 2  # both folders were found, and the pattern names no case of theirs


def test_check_says_what_is_not_there_yet(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vendor("check") == 3
    error = capsys.readouterr().err
    assert "third_party/gemm: the project names this folder, and it is not there yet" in error
    assert vendor("update") == 0  # writes it
    assert vendor("check") == 0


def test_a_folder_is_chosen_by_its_name(project: Path) -> None:
    assert vendor("update", "../third_party/gemm") == 0
    assert (project / "third_party/gemm/fa4gen.lock").exists()
    assert vendor("update", "../elsewhere") == 2


def test_what_the_file_names_no_more_stays_until_it_is_removed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vendor("add", OTHER, "--into", "../attn", "--adapter", "python") == 0
    capsys.readouterr()
    assert vendor("check", "../attn") == 3
    out = capsys.readouterr().out
    assert f"{OTHER} is there and not asked for" in out
    assert f"fa4gen vendor update ../attn --remove {OTHER} --remove python" in out
    assert vendor("update", "../attn") == 0
    assert (project / f"attn/kernels/acme_{OTHER}.cu").exists()
    assert vendor("update", "../attn", "--remove", OTHER, "--remove", "python") == 0
    assert not (project / f"attn/kernels/acme_{OTHER}.cu").exists()
    assert not (project / "attn/adapters").exists()
    assert vendor("check", "../attn") == 0


def test_what_the_file_asks_for_is_checked_and_brought_about(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "fa4gen.toml"
    (project / "kernels").mkdir()
    (project / "kernels/my_kernel.yaml").write_text(MINE)
    path.write_text(
        '[[vendor]]\ninto = "attn"\nprefix = "acme"\n'
        f'configs = ["kernels/*.yaml", "{CONFIG}"]\nadapters = ["python"]\n'
    )
    capsys.readouterr()
    assert vendor("check", "../attn", "--format", "json") == 3
    (folder,) = json.loads(capsys.readouterr().out)["folders"]
    assert folder["request"] == [
        "the adapter python is asked for and not there",
        "my_kernel is asked for and not there",
    ]
    assert vendor("update", "../attn") == 0
    lock = json.loads((project / "attn/fa4gen.lock").read_text())
    assert [kernel["name"] for kernel in lock["kernels"]] == ["my_kernel", CONFIG]
    assert lock["kernels"][0]["source"] == "my_kernel.yaml"
    assert vendor("check") == 0
    (project / "kernels/my_kernel.yaml").write_text(MINE.replace("bf16", "fp16"))
    assert vendor("check") == 3
    assert "the config of my_kernel changed" in capsys.readouterr().out


def test_what_the_project_allows_is_no_finding(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "attn/mine/deep").mkdir(parents=True)
    (project / "attn/mine/deep/more.c").write_text("mine")
    (project / "attn/README.md").write_text("mine")
    assert vendor("check", "../attn") == 0
    assert "2 allowed" in capsys.readouterr().out
    (project / "attn/mine/other.txt").write_text("mine")
    assert vendor("check", "../attn") == 3
    assert "foreign  ../attn/mine " in capsys.readouterr().out


def test_a_config_that_is_not_there_names_folder_and_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "fa4gen.toml"
    path.write_text(path.read_text().replace(f'"{OTHER}"', '"nowhere.yaml"'))
    assert vendor("update") == 2
    error = capsys.readouterr().err
    assert "no such file" in error
    assert "third_party/gemm" in error
    assert "fa4gen.toml" in error


@pytest.mark.parametrize("arguments", [["check"], ["update"], ["verify"], ["recompile"]])
def test_without_a_project_it_says_what_is_missing(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    assert vendor(*arguments) == 2
    error = capsys.readouterr().err
    assert "no folder is given, and there is no fa4gen.toml or [tool.fa4gen] here or above" in error
    (tmp_path / "fa4gen.toml").write_text("")
    assert vendor(*arguments) == 2
    assert "fa4gen.toml: the project vendors nothing" in capsys.readouterr().err


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
