"""Commands in a folder with a project file, and without one when CONFIG is missing."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.config import selection
from fa4gen.config.find import shipped_configs

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
COMMANDS = [
    ["render"],
    ["check"],
    ["compile"],
    ["verify", "--list-cases"],
    ["explain"],
    ["bench"],
]


@pytest.fixture
def work(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, with small templates in mine/."""
    monkeypatch.setattr(Path, "home", lambda: mine)
    return mine


def write(*paths: str, config: str = CONFIG) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(config)


def render(*args: str) -> int:
    return main(["render", "--templates", "mine", *args])


def check(*args: str) -> int:
    return main(["check", "--templates", "mine", *args])


def kernels(out: str = "generated") -> set[str]:
    return {path.stem for path in Path(out).rglob("*.cu")}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_without_config_and_project_nothing_is_taken(
    work: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    write("my_kernel.yaml")
    assert render("my_kernel.yaml") == 0
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*")}
    capsys.readouterr()
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: no CONFIG is given, and there is no fa4gen.toml or [tool.fa4gen] here or above\n"
        "  Name config files, folders or shipped configs; or write configs = [...] to fa4gen.toml; "
        "or take all that come with fa4gen by --shipped.\n"
    )
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*")} == before


@pytest.mark.parametrize("command", [["render", "--dry-run"], ["check"], ["explain"]], ids=str)
def test_without_config_the_projects_own_are_taken(
    work: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    write("kernels/one.yaml", "kernels/two.yaml", "other.yaml")
    (work / "pyproject.toml").write_text('[tool.fa4gen]\nconfigs = ["kernels"]\nout = "gen"\n')
    (work / "deep/er").mkdir(parents=True)
    for folder in (work, work / "deep/er"):
        monkeypatch.chdir(folder)
        main([*command, "--format", "json"])
        text = capsys.readouterr().out
        data = json.loads(text)
        assert "one" in text
        assert "other" not in text
        if command[0] == "check":
            assert {file["kernel"] for file in data["files"]} == {"sm_90a/one", "sm_90a/two"}
            assert all(str(work / "gen") in str(Path(f["path"]).absolute()) for f in data["files"])
        else:
            assert len(data["kernels"]) == 2


def test_a_project_without_configs_says_what_to_add(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "fa4gen.toml").write_text('out = "gen"\n')
    assert main(["check"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("fa4gen.toml: no CONFIG is given, and the project names no configs\n")
    assert "Add configs = [" in err


def test_a_config_that_the_project_names_and_is_not_there(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "fa4gen.toml").write_text('configs = ["gone.yaml"]\n')
    assert main(["render"]) == 2
    assert "(configs of fa4gen.toml)" in capsys.readouterr().err


def test_out_of_the_project_counts_with_config_and_yields_to_the_option(work: Path) -> None:
    write("one.yaml")
    (work / "fa4gen.toml").write_text('configs = ["one.yaml"]\nout = "gen"\n')
    assert render("one.yaml") == 0
    assert check() == 0
    assert kernels("gen") == {"one"}
    assert render("-o", "else") == 0
    assert kernels("else") == {"one"}
    assert not Path("generated").exists()


def test_shipped_configs_are_taken_by_option_only(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.yaml")
    (work / "fa4gen.toml").write_text('configs = ["one.yaml"]\n')
    assert main(["render", "--shipped", "--dry-run", "--format", "json"]) == 0
    names = {kernel["name"] for kernel in json.loads(capsys.readouterr().out)["kernels"]}
    assert "d128_causal_bf16" in names
    assert "one" not in names
    assert main(["render", "--shipped", "one.yaml"]) == 2
    assert "CONFIG and --shipped exclude each other" in capsys.readouterr().err


def test_prune_in_a_project(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole output folder is the project's."""
    write("kernels/one.yaml", "kernels/gone.yaml", "extra.yaml")
    (work / "fa4gen.toml").write_text('configs = ["kernels", "extra.yaml"]\n')
    assert render() == 0
    Path("kernels/gone.yaml").unlink()
    assert render("kernels", "--prune") == 0
    assert check("kernels") == 0
    assert kernels() == {"one", "gone", "extra"}
    capsys.readouterr()
    assert render("--prune") == 2
    err = capsys.readouterr().err
    assert err.startswith("error: --prune would delete 4 files that no config keeps here:\n")
    assert "\n    generated/sm_90a/gone/gone_barriers.h\n" in err
    assert "Add --yes" in err
    assert kernels() == {"one", "gone", "extra"}
    assert render("--yes") == 2
    assert render("--prune", "--yes") == 0
    assert kernels() == {"one", "extra"}
    assert check() == 0


def test_deleting_what_fa4gen_did_not_write_is_said(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.yaml")
    render("one.yaml")
    Path("generated/sm_90a/one/notes.txt").write_text("mine")
    capsys.readouterr()
    assert check("one.yaml") == 3
    assert capsys.readouterr().out.endswith(
        "To make them current (rm deletes what fa4gen did not write so):\n"
        "  rm generated/sm_90a/one/notes.txt\n"
    )


def test_hints_repeat_what_was_given(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("my kernels/one.yaml")
    options = ["-o", "my out", "--templates", "mine"]
    assert main(["render", *options, "my kernels"]) == 0
    edited = Path("my out/sm_90a/one/one.cu")
    edited.write_text("mine")
    capsys.readouterr()
    given = shlex.join([*options, "my kernels"])
    assert main(["render", *options, "my kernels"]) == 3
    assert f"`fa4gen check --diff {given}`" in capsys.readouterr().err
    assert main(["render", "--force", *options, "my kernels"]) == 0
    Path("my out/sm_90a/one/more.h").write_text("mine")
    assert main(["render", *options, "my kernels"]) == 0
    assert f"see `fa4gen check {given}`.\n" in capsys.readouterr().err
    Path("mine/attention_sm90/kernel.cu.j2").write_text("// new\n")
    assert main(["check", *options, "my kernels"]) == 3
    assert f"  fa4gen render {given}\n" in capsys.readouterr().out


def test_the_hint_of_shipped_ones(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = shipped_configs()[::60]
    monkeypatch.setattr(selection, "shipped_configs", lambda: some)
    assert main(["check", "--shipped", "--format", "json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert data["fix"] == ["fa4gen render --shipped"]


def test_settings_count_in_render_and_check_and_are_repeated_in_hints(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.yaml")
    given = ["--set", "depth=64", "--set", "mask={chunked: 8}"]
    assert render("one.yaml", *given) == 0
    config = json.loads(Path("generated/sm_90a/one/one.json").read_text())["config"]
    assert (config["depth"], config["mask"]) == (64, {"chunked": 8})
    assert check("one.yaml", *given) == 0
    capsys.readouterr()
    assert check("one.yaml") == 3
    assert check("one.yaml", *given, "--set", "lse=false") == 3
    assert (
        "fa4gen render --set depth=64 --set 'mask={chunked: 8}' --set lse=false --templates mine "
        "one.yaml\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["render", "check", "compile", "verify", "explain", "bench", "vendor"]
)
@pytest.mark.parametrize("output_format", ["text", "json", "github"])
def test_every_command_places_an_error_at_the_option(
    work: Path, capsys: pytest.CaptureFixture[str], command: str, output_format: str
) -> None:
    write("one.yaml")
    arguments = [command, "one.yaml", "--set", "depth=100", "--format", output_format]
    if command == "vendor":
        arguments = ["vendor", "add", *arguments[1:], "--into", "there", "--prefix", "acme"]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    if output_format == "text":
        assert captured.err.startswith("--set depth=100 (one.yaml): depth: 100 is not possible; ")
    elif output_format == "json":
        (problem,) = json.loads(captured.out)["problems"]
        assert (problem["option"], problem["file"]) == ("--set depth=100", "one.yaml")
    else:
        assert captured.err.startswith("::error file=one.yaml::--set depth=100: depth: 100 is ")
    assert not Path("generated").exists()


def test_what_does_not_fit_is_placed_at_the_option(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # the row is in one line
    write("one.yaml")
    assert main(["explain", "one.yaml", "--set", "num_kv_stages=16"]) == 2
    assert "\n--set num_kv_stages=16 (one.yaml): " in "\n" + capsys.readouterr().err
    assert main(["explain", "one.yaml", "--set", "num_kv_stages=2"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "num_kv_stages" in line][:1]
    assert row.split()[1:3] == ["2", "config"]
    assert "--set num_kv_stages=2" in row


def test_vendor_takes_settings_with_config_only(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--into", "there", "--adapter", "python"]
    assert main(["vendor", "add", *given, "--set", "depth=64"]) == 2
    assert "--set changes the configs that are named" in capsys.readouterr().err


def test_a_kernel_of_the_project_is_found_by_its_name(work: Path, capsys) -> None:
    write("kernels/first.yaml", "kernels/deep/d128_causal_bf16.yaml")
    write("kernels/b.yaml", config=f"name: second\n{CONFIG}")
    write("kernels/broken.yaml", config="second: [\n")
    Path("fa4gen.toml").write_text('configs = ["kernels"]\nout = "generated"\n')
    Path("inside").mkdir()
    os.chdir("inside")
    for name, path in {
        "first": "kernels/first.yaml",
        "second": "kernels/b.yaml",
        "d128_causal_bf16": "kernels/deep/d128_causal_bf16.yaml",  # not the shipped one
        "d64_causal_bf16": "/attention_hopper_shapes.yaml/d64_causal_bf16",
    }.items():
        assert main(["explain", name, "--format", "json"]) == 0
        (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
        assert kernel["config"].endswith(path)
    assert main(["explain", "third"]) == 2
    assert "no such file, folder or shipped config" in capsys.readouterr().err
    Path("../fa4gen.toml").write_text("configs = 5\n")
    assert main(["explain", "d64_causal_bf16", "--format", "json"]) == 0


def test_templates_of_the_project_are_taken_by_every_command(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("one.yaml")
    (work / "fa4gen.toml").write_text('configs = ["one.yaml"]\ntemplates = "mine"\n')
    (work / "inside").mkdir()
    monkeypatch.chdir(work / "inside")
    assert main(["render", "--no-compile"]) == 0
    kernel = work / "generated/sm_90a/one/one.cu"
    assert kernel.read_text().endswith("// one\n")
    inputs = json.loads(kernel.with_suffix(".json").read_text())["inputs"]
    assert list(inputs["own_templates"]) == [
        "attention_sm90/kernel.cu.j2",
        "device/rings/barriers.h.j2",
    ]
    capsys.readouterr()
    assert main(["check"]) == 0
    said = "/mine take precedence over the shipped ones\n"
    assert capsys.readouterr().err.endswith(said)
    (work / "mine/attention_sm90/kernel.cu.j2").write_text("// {{ plan.name }} is new\n")
    capsys.readouterr()
    assert main(["check"]) == 3
    assert capsys.readouterr().out.endswith("  fa4gen render\n")  # which needs no option
    (work / "empty").mkdir()
    assert main(["check", "--templates", "../empty"]) == 3
    captured = capsys.readouterr()
    assert "--templates ../empty" in captured.out
    assert said not in captured.err  # it was given


def test_a_folder_with_a_file_without_effect_is_refused_by_all(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one.yaml")
    (work / "mine/kernel.cu.j2").write_text("")
    commands = [*COMMANDS, ["tune", "one.yaml"], ["diff", "one.yaml"], ["sass", "one.yaml"]]
    commands += [["sweep", "attention_masks"], ["templates", "list"]]
    for words in commands:
        assert main([*words, "--templates", "mine"]) == 2
        assert capsys.readouterr().err.startswith(
            "mine/kernel.cu.j2: the file overrides no template, and none of yours includes it\n"
            "  Did you mean "
        ), words
    (work / "fa4gen.toml").write_text('configs = ["one.yaml"]\ntemplates = "gone"\n')
    assert main(["explain"]) == 2
    assert capsys.readouterr().err.startswith("gone: the template folder does not exist\n")


def test_a_wrong_file_that_names_templates_ends_commands_about_other_configs(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says from which texts their kernels are made; without that word it is not needed."""
    (work / "fa4gen.toml").write_text('templates = "mine"\nconfigs = 5\n')
    assert main(["explain", "d64_causal_bf16"]) == 2
    assert "fa4gen.toml" in capsys.readouterr().err
    (work / "fa4gen.toml").write_text("configs = 5\n")
    assert main(["explain", "d64_causal_bf16"]) == 0
