"""``extends`` in config files and ``--set`` over them: values, and the places of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4gen.config.load import config_from_data, load_config, load_mapping, locate
from fa4gen.config.settings import parse_settings
from fa4gen.config.sweep import expand_sweep
from fa4gen.config.yaml_positions import read_document
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError, Problem

BASE = "name: base\nkernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\nmask: causal\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("shared").mkdir()
    Path("shared/base.yaml").write_text(BASE)
    return tmp_path


def own(text: str, name: str = "own.yaml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def refused(text: str, *settings: str) -> list[Problem]:
    with pytest.raises(ConfigError) as error:
        load_config(own(text), parse_settings(settings))
    return list(error.value.problems)


def places(problems: list[Problem]) -> list[str]:
    return [problem.place for problem in problems]


def test_a_base_gives_the_keys_that_the_file_does_not() -> None:
    loaded = load_config(own("extends: shared/base.yaml\nmask: none\nlse: false\n"))
    expected = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
    assert loaded.config == config_from_data({**expected, "mask": "none", "lse": False}, "own")
    assert loaded.files == (Path("own.yaml"), Path("shared/base.yaml"))
    assert loaded.place_of("depth") == "shared/base.yaml:5"
    assert loaded.place_of("mask") == "own.yaml:2"
    assert loaded.place_of("BN") == ""


def test_a_base_is_looked_for_beside_the_file_and_among_the_shipped() -> None:
    beside = own("extends: base.yaml\ndepth: 64\n", "shared/other.yaml")
    assert load_config(beside).config.depth == 64
    shipped = load_config(own("extends: d128_causal_bf16\nmask: none\n"))
    assert (shipped.config.mask, shipped.config.name) == ("none", "own")


def test_a_value_replaces_the_bases_whole_value() -> None:
    Path("shared/base.yaml").write_text(BASE + "registers: {producer: 40, consumer: 232}\n")
    text = "extends: shared/base.yaml\nregisters: {producer: 24}\n"
    (problem,) = refused(text)
    assert problem.message == "the key consumer is missing in registers"
    assert problem.place == "own.yaml:2:1"


@pytest.mark.parametrize(
    ("base", "text", "place", "message"),
    [
        (BASE, "mask: casual", "own.yaml:2:7", "mask: casual is not possible"),
        (BASE + "lse: 1\n", "depth: 64", "shared/base.yaml:7:6", "lse: 1 is not possible"),
        (BASE + "dept: 1\n", "depth: 64", "shared/base.yaml:7:1", "unknown key dept"),
        (BASE + "lse: &a 1\nlse: *a\n", "lse: true", "shared/base.yaml:8:1", "given twice"),
        (BASE.replace("depth: 128\n", ""), "lse: true", "own.yaml:1:1", "depth is missing"),
        (BASE + "page_size: 64\n", "lse: true", "shared/base.yaml:7:12", "is for keys: paged"),
        (BASE + "a\n", "depth: 64", "shared/base.yaml:8:1", "not YAML"),
        ("- a\n", "depth: 64", "own.yaml:1:10", "shared/base.yaml is not a config"),
        ("extends: x\n", "depth: 64", "own.yaml:1:10", "extends another config itself"),
    ],
)  # fmt: skip
def test_errors_point_into_the_right_file(base: str, text: str, place: str, message: str) -> None:
    Path("shared/base.yaml").write_text(base)
    problems = refused(f"extends: shared/base.yaml\n{text}\n")
    assert place in places(problems)
    assert message in problems[places(problems).index(place)].message


@pytest.mark.parametrize(
    ("value", "message", "remedy"),
    [
        ("12", "extends names one config", "extends: d128_causal_bf16"),
        ("[a, b]", "extends names one config", ""),
        ("gone.yaml", "extends: no such file, folder or shipped config (gone.yaml)", ""),
        ("shared/bse.yaml", "extends: no such file", "Did you mean shared/base.yaml?"),
        ("attention/sm_90a", "configs", "Name one."),
        ("own.yaml", "a config cannot extend itself", ""),
    ],
)
def test_bases_that_cannot_be(value: str, message: str, remedy: str) -> None:
    (problem,) = refused(f"# a comment\nextends: {value}\n")
    assert problem.place == "own.yaml:2:10"
    assert message in problem.message
    assert remedy in problem.remedy


def test_a_misspelt_extends_gets_the_key() -> None:
    problems = refused("extend: shared/base.yaml\n")
    assert any("unknown key extend" in p.message and "extends" in p.remedy for p in problems)
    with pytest.raises(ConfigError, match="extends is a key of files"):
        load_mapping({"extends": "d128_causal_bf16"}, "x")


def test_the_plan_refuses_with_the_place_in_the_base() -> None:
    Path("shared/base.yaml").write_text(BASE + "num_kv_stages: 16\n")
    loaded = load_config(own("extends: shared/base.yaml\n"))
    with pytest.raises(ConfigError) as error:
        build_plan(loaded.config)
    assert "shared/base.yaml:7:16" in places(list(locate(error.value, loaded).problems))


def test_settings_are_read_as_yaml_and_come_before_file_and_base() -> None:
    path = own("extends: shared/base.yaml\ndepth: 64\n")
    given = ["depth=256", "lse=false", "mask={sliding_window: 7}", "registers.producer=24"]
    loaded = load_config(path, parse_settings([*given, "registers.consumer=240", "name=other"]))
    assert loaded.config.data(only_given=True) == {
        "kernel": "attention",
        "arch": "sm_90a",
        "dtype": "bf16",
        "name": "other",
        "depth": 256,
        "lse": False,
        "mask": {"sliding_window": 7},
        "registers": {"producer": 24, "consumer": 240},
    }
    assert loaded.place_of("depth") == "--set depth=256"
    assert loaded.place_of("dtype") == "shared/base.yaml:4"


@pytest.mark.parametrize(
    ("setting", "message", "remedy"),
    [
        ("depth=100", "depth: 100 is not possible; it must be 64", "The nearest is 96."),
        ("depth='128'", 'depth: "128" is not possible', "without quotes"),
        ("dept=64", "unknown key dept", "Did you mean depth, which is also given?"),
        ("registers.producr=24", "unknown key producr in registers", "Did you mean producer?"),
        ("stage_stride_cols=64", "unknown key stage_stride_cols", ""),
        ("page_size=64", "page_size: 64 is for keys: paged, but keys are dense", ""),
    ],
)
def test_errors_name_the_option(setting: str, message: str, remedy: str) -> None:
    text = "extends: shared/base.yaml\nlse: false\n"
    problems = refused(text, setting)
    assert set(places(problems)) == {f"--set {setting} (own.yaml)"}
    assert {(problem.file, problem.line) for problem in problems} == {("own.yaml", 0)}
    assert any(message in p.message and remedy in p.remedy for p in problems)


@pytest.mark.parametrize(
    ("settings", "option", "message"),
    [
        (["depth"], "depth", "'depth' is not KEY=VALUE"),
        (["=64"], "=64", "is not KEY=VALUE"),
        (["a b=64"], "a b=64", "is not KEY=VALUE"),
        (["depth=[64"], "depth=[64", "not YAML"),
        (["depth=0100"], "depth=0100", "octal"),
        (["depth=64", "depth=96"], "depth=96", "depth is set already by --set depth=64"),
        (["registers=auto", "registers.producer=24"], "registers.producer=24", "is set already by"),
        (["extends=x"], "extends=x", "in files only"),
    ],
)
def test_settings_that_cannot_be(settings: list[str], option: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_settings(settings)
    (problem,) = error.value.problems
    assert problem.place == f"--set {option}"
    assert message in problem.message


def test_the_text_gives_the_same_config_on_its_own() -> None:
    """It is what the lock of a vendored folder keeps."""
    path = own("extends: shared/base.yaml\nBN: 96\n")
    loaded = load_config(path, parse_settings(["mask={chunked: 64}", "softcap=null"]))
    again = config_from_data(read_document(loaded.text, "").value, "own")
    assert again == loaded.config
    assert loaded.text.startswith("# own.yaml: extends base.yaml; --set mask={chunked: 64}; --set ")
    plain = load_config("shared/base.yaml")
    assert plain.text == BASE
    assert plain.files == (Path("shared/base.yaml"),)


def test_the_base_of_a_sweep_may_extend_another() -> None:
    own("extends: shared/base.yaml\ndepth: 64\n")
    own("base: own.yaml\nmatrix: {lse: [true, false]}\n", "sweep.yaml")
    cases = expand_sweep("sweep.yaml").cases
    assert [(case.config["depth"], case.config["mask"]) for case in cases] == [(64, "causal")] * 2
    Path("shared/base.yaml").write_text(BASE + "softcap: -1\n")
    with pytest.raises(ConfigError) as error:
        expand_sweep("sweep.yaml")
    assert "shared/base.yaml:7:10" in places(list(error.value.problems))
