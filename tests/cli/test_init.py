"""``fa4gen init``: a config that works as written, and says what else it could say."""

from __future__ import annotations

import re
import shlex
from itertools import product
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.config.load import load_config
from fa4gen.config.project import find_project
from fa4gen.designs.registry import DESIGNS
from fa4gen.strict.json_schema import model_schema

KINDS = list(
    dict.fromkeys((design.family.name, arch) for design in DESIGNS for arch in design.archs)
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*args: str, kernel: str = "attention", arch: str = "sm_90a") -> int:
    return main(["init", "--kernel", kernel, "--arch", arch, *args])


def test_what_it_writes_is_what_commands_without_config_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert init() == 0
    captured = capsys.readouterr()
    assert captured.out == "created   my_kernel.yaml\ncreated   fa4gen.toml\n"
    assert "Next: fa4gen explain my_kernel.yaml; fa4gen render; fa4gen verify\n" in captured.err
    project = find_project()
    assert project is not None
    assert (project.content.configs, project.content.out) == (("my_kernel.yaml",), "generated")
    assert main(["render"]) == 0
    assert Path("generated/sm_90a/my_kernel/my_kernel.cu").is_file()
    assert main(["check"]) == 0


@pytest.mark.parametrize(
    "project",
    ["", 'configs = ["other.yaml"]\n', 'out = "generated"\n', 'configs = ["gone.yaml"]\n'],
)
def test_what_it_advises_works_without_a_project_that_names_the_file(
    capsys: pytest.CaptureFixture[str], project: str
) -> None:
    if project:
        Path("fa4gen.toml").write_text(project)
        Path("other.yaml").write_text("kernel: gemm\narch: sm_90a\ndtype: bf16\n")
    assert init("a b.yaml", "--set", "name=ab", "--no-project") == 0
    [advice] = re.findall("^Next: (.*)$", capsys.readouterr().err, re.MULTILINE)
    assert advice == "fa4gen explain 'a b.yaml'; fa4gen render 'a b.yaml'; fa4gen verify 'a b.yaml'"
    for line in advice.split("; ")[:2]:
        assert main(shlex.split(line)[1:]) == 0
    assert Path("generated/sm_90a/ab/ab.cu").is_file()


@pytest.mark.parametrize(("kernel", "arch"), KINDS, ids="-".join)
def test_every_key_is_there_with_its_default(kernel: str, arch: str) -> None:
    assert init("a.yaml", kernel=kernel, arch=arch) == 0
    text = Path("a.yaml").read_text()
    config = load_config("a.yaml").config
    assert (config.kernel, config.arch, config.dtype) == (kernel, arch, "bf16")
    written = re.findall(r"^#?([A-Za-z]\w*): ", text, re.MULTILINE)
    assert written == [key for key in type(config).model_fields if key != "name"]
    assert max(map(len, text.splitlines())) <= 100
    Path("b.yaml").write_text(re.sub(r"^#(?=\w)", "", text, flags=re.MULTILINE) + "name: a\n")
    everything = load_config("b.yaml").config
    assert everything == config
    assert everything.model_fields_set == set(type(config).model_fields)
    assert "Values: attention, gemm or merge.\nkernel: " in text.replace("# ", "")
    assert "Values: sm_90a, sm_100a, sm_103a or sm_100f.\narch: " in text.replace("# ", "")
    described = text.replace("# ", "").replace("\n", " ")
    properties = model_schema(type(config))["properties"]
    for key, node in ((key, properties[key]) for key in type(config).model_fields):
        assert key == "name" or node["description"] in described, key


def test_options_give_what_is_written_out() -> None:
    settings = ["--set", "mask={sliding_window: 9}", "--set", "cta_group=2", "--set", "name=mine"]
    assert init("a.yml", "--set", "dtype=fp16", "--set", "depth=512", *settings) == 0
    config = load_config("a.yml").config
    assert config.data(only_given=True) == {
        "kernel": "attention",
        "name": "mine",
        "arch": "sm_90a",
        "dtype": "fp16",
        "depth": 512,
        "cta_group": 2,
        "mask": {"sliding_window": 9},
    }
    assert main(["init", "b.yaml", "--set", "kernel=gemm", "--set", "arch=sm_100a"]) == 0


def test_no_file_is_overwritten_without_force(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_kernel.yaml").write_text("mine")
    assert init() == 2
    assert capsys.readouterr().err.startswith("my_kernel.yaml: there is such a file already\n")
    assert Path("my_kernel.yaml").read_text() == "mine"
    assert not Path("fa4gen.toml").exists()
    Path("fa4gen.toml").write_text('configs = ["other.yaml"]\n')
    Path("other.yaml").write_text("kernel: gemm\narch: sm_90a\ndtype: bf16\n")
    assert init("--force") == 0
    assert load_config("my_kernel.yaml").config.depth == 128
    assert Path("fa4gen.toml").read_text() == 'configs = ["other.yaml"]\n'
    captured = capsys.readouterr()
    assert captured.out == "updated   my_kernel.yaml\n"
    assert "fa4gen.toml does not name it: add it to configs there." in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arch", "sm_90"], "--arch sm_90 (my_kernel.yaml): arch: sm_90 is not possible"),
        (["--set", "depth=512"], "the key cta_group is missing\n  Add cta_group: 2. At depth 512"),
        (["--set", "dtype=fp8_e5m2"], "--set dtype=fp8_e5m2 (my_kernel.yaml): dtype: "),
        (["--set", "num_kv_stages=16"], "--set num_kv_stages=16 (my_kernel.yaml): "),
        (
            ["--kernel", "gemm", "--set", "depth=64"],
            "--set depth=64 (my_kernel.yaml): unknown key depth",
        ),
        (["kernel.txt"], "the name of a config ends with .yaml or .yml"),
        (["My-Kernel.yaml"], "is not a kernel name"),
    ],
)
def test_what_cannot_work_is_not_written(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert init(*arguments) == 2
    assert message in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_without_options_it_is_the_usual_kernel() -> None:
    assert main(["init"]) == 0
    config = load_config("my_kernel.yaml").config
    assert (config.kernel, config.arch) == ("attention", "sm_90a")


@pytest.mark.parametrize("no_project", [[], ["--no-project"]], ids=str)
def test_a_file_in_another_folder(here: Path, no_project: list[str]) -> None:
    assert init("kernels/deep/a.yaml", *no_project) == 0
    project = find_project()
    if no_project:
        assert project is None
    else:
        assert project is not None
        assert project.content.configs == ("kernels/deep/a.yaml",)


def test_kinds_are_all() -> None:
    kernels, chips = ("attention", "gemm", "merge"), ("sm_90a", "sm_100a", "sm_103a", "sm_100f")
    assert set(KINDS) == set(product(kernels, chips))
