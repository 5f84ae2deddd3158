"""``fa4gen templates``, and the option of all commands that need a kernel's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from fa4gen.cli.main import group, main
from fa4gen.cli.templates import COMMANDS
from fa4gen.render.own_templates import shipped_templates
from fa4gen.resources import data_root

if TYPE_CHECKING:
    from collections.abc import Iterator

LOAD = "attention_sm90/load.cuh.j2"
CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
NO_SOURCE = {"init", "list", "record", "vendor verify"}
"""Commands that take configs or a folder, and render nothing."""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, with no project above it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["templates", "list", *words, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def commands(over: click.Group = group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in over.list_commands(click.Context(over)):
        command = over.get_command(click.Context(over), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_every_command_that_needs_a_kernels_source_takes_own_templates() -> None:
    has = {name: {parameter.name for parameter in command.params} for name, command in commands()}
    wanted = {
        name
        for name, parameters in has.items()
        if parameters & {"configs", "settings", "folder"} and name not in NO_SOURCE
    }
    assert {"render", "verify", "bench", "tune", "explain", "diff", "sass", "vendor add",
            "vendor recompile", "templates list"} <= wanted  # fmt: skip
    with_option = {name for name, parameters in has.items() if "templates" in parameters}
    assert with_option == {*wanted, "sweep"}


def test_all_templates_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    assert found["folder"] is None
    assert [row["name"] for row in found["templates"]] == list(shipped_templates())
    (load,) = [row for row in found["templates"] if row["name"] == LOAD]
    assert load == {
        "name": LOAD,
        "purpose": "role: load. … brings in queries, keys and values by TMA.",
        "path": str(data_root("templates") / LOAD),
        "overridden_by": None,
        "changed": False,
    }


def test_those_of_a_config_are_what_its_kernel_is_made_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("one.yaml").write_text(CONFIG)
    names = [row["name"] for row in listed(capsys, "one.yaml")["templates"]]
    assert LOAD in names
    assert not any(name.startswith(("gemm", "vendored")) for name in names)


def test_the_list_says_what_is_overridden(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "copy", LOAD, "--to", "mine"]) == 0
    (row,) = [r for r in listed(capsys, "--templates", "mine")["templates"] if r["overridden_by"]]
    assert (row["name"], row["overridden_by"], row["changed"]) == (LOAD, f"mine/{LOAD}", False)
    assert main(["templates", "list", "--templates", "mine"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["template", "for", "overridden", "by"]
    assert f" mine/{LOAD} (as shipped)" in captured.out
    assert captured.err == f"{len(shipped_templates())} templates, 1 overridden\n"
    Path("mine", LOAD).write_text("// mine\n")
    (row,) = [r for r in listed(capsys, "--templates", "mine")["templates"] if r["overridden_by"]]
    assert row["changed"]
    assert main(["templates", "list", "--format", "github"]) == 0
    assert capsys.readouterr().out.startswith("| template | for |\n| --- | --- |\n")


def test_a_copy_is_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "copy", LOAD, "--to", "my own"]) == 0
    assert Path("my own", LOAD).read_bytes() == (data_root("templates") / LOAD).read_bytes()
    captured = capsys.readouterr()
    assert captured.out == f"created   my own/{LOAD}\n"
    assert "--templates 'my own'" in captured.err
    assert main(["templates", "copy", LOAD, "--to", "other", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == {"template": LOAD, "path": f"other/{LOAD}"}


@pytest.mark.parametrize("is_link", [False, True])
def test_a_copy_overwrites_nothing(capsys: pytest.CaptureFixture[str], is_link: bool) -> None:
    target = Path("mine", LOAD)
    target.parent.mkdir(parents=True)
    if is_link:
        target.symlink_to("nowhere")
    else:
        target.write_text("// mine\n")
    assert main(["templates", "copy", LOAD, "--to", "mine"]) == 2
    assert f"mine/{LOAD}: there is such a file already" in capsys.readouterr().err
    assert target.is_symlink() == is_link
    assert is_link or target.read_text() == "// mine\n"


@pytest.mark.parametrize("name", ["attention_sm90/loda.cuh.j2", "../load.cuh.j2", ""])
def test_a_name_that_is_none_gets_the_nearest(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["templates", "copy", name, "--to", "mine"]) == 2
    err = capsys.readouterr().err
    assert f"there is no template {name!r}" in err
    assert "Did you mean " in err
    assert not Path("mine").exists()


def test_a_copy_goes_to_the_folder_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "copy", LOAD]) == 0
    assert Path("templates", LOAD).exists()
    Path("fa4gen.toml").write_text('templates = "mine"\n')
    capsys.readouterr()
    assert main(["templates", "copy", LOAD]) == 0
    assert Path("mine", LOAD).exists()
    assert capsys.readouterr().err == ""


def test_names_are_completed() -> None:
    command = dict(commands())["templates copy"]
    (name,) = [parameter for parameter in command.params if parameter.name == "name"]
    found = name.shell_complete(click.Context(command), "attention_sm90/lo")
    assert LOAD in [item.value for item in found]
    assert all(item.value.startswith("attention_sm90/lo") for item in found)


def test_the_group_names_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and lazy.short_help[:20] in out for name, lazy in COMMANDS.items())
