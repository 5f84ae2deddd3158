from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.cli.main import main
from fa4gen.config.find import shipped_configs
from fa4gen.config.json_schema import editor_schema, models
from fa4gen.config.load import config_from_data, load_config
from fa4gen.designs.registry import MODELS
from fa4gen.errors import ConfigError
from fa4gen.resources import data_root

VALID = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 128}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = editor_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_shipped_schema_is_the_current_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0

    shipped = (data_root("configs") / "schema.json").read_text()
    assert capsys.readouterr().out == shipped, "run: fa4gen schema > configs/schema.json"


def test_every_shipped_config_fits_and_names_the_schema_for_editors(validator: Any) -> None:
    for path in shipped_configs():
        validator.validate(yaml.safe_load(load_config(path).text))
        if not path.is_file():  # a case of a sweep
            continue
        text = path.read_text()
        first = text.splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema=")
        schema = path.parent / first.partition("$schema=")[2]
        assert schema.resolve() == (data_root("configs") / "schema.json").resolve()


@pytest.mark.parametrize(
    "change", [{"depth": 100}, {"depht": 1}, {"mask": {"sliding_window": 0}}, {"arch": None}]
)
def test_what_the_loader_refuses_the_schema_refuses(
    validator: Any, change: dict[str, object]
) -> None:
    assert validator.is_valid(VALID)
    assert not validator.is_valid({**VALID, **change})


BLACKWELL = {**VALID, "arch": "sm_100a"}
GEMM = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({**VALID, "ping_pong": True}, True),
        ({**VALID, "num_pv_stages": 2}, False),
        ({**VALID, "dtype": "fp8_e4m3"}, True),
        ({**VALID, "dtype": "fp8_e5m2"}, False),
        ({**BLACKWELL, "num_pv_stages": 2, "dtype": "fp8_e4m3"}, True),
        ({**BLACKWELL, "arch": "sm_103a", "name": "mine"}, True),
        ({**BLACKWELL, "ping_pong": True}, False),
        ({**BLACKWELL, "registers": {"producer": 24, "consumer": 240}}, False),
        ({**VALID, "arch": "sm_90"}, False),
        ({key: value for key, value in VALID.items() if key != "arch"}, False),
        ([VALID], False),
        ({**GEMM, "ping_pong": True, "activation": "relu(x)", "dtype": "fp8_e4m3"}, True),
        ({**GEMM, "arch": "sm_100a", "num_accum_stages": 2}, True),
        ({**GEMM, "num_accum_stages": 2}, False),
        ({**GEMM, "depth": 64}, False),
        ({**VALID, "residual": "row"}, False),
        ({**GEMM, "kernel": "gem"}, False),
        ({"arch": "sm_90a", "dtype": "bf16"}, False),
        ({"extends": "d128_causal_bf16"}, True),
        ({"extends": "../base.yaml", "depth": 64, "residual": "row"}, True),
        ({**VALID, "extends": "d128_causal_bf16"}, True),
        ({"extends": "d128_causal_bf16", "depth": 100}, False),
        ({"extends": "d128_causal_bf16", "junk": 1}, False),
        ({"extends": 1}, False),
    ],
)
def test_family_and_architecture_tell_which_keys_fit(
    validator: Any, config: object, fits: bool
) -> None:
    assert validator.is_valid(config) == fits


KEYS = sorted({key for model in MODELS for key in model.load().model_fields})
VALUES = st.sampled_from(
    ["auto", "sm_90a", "sm_100a", "bf16", "fp8_e4m3", "none", "fused", "direct", True, None, 0, 1,
     2, 0.5, 64, 128, 256, {"sliding_window": 9}, {"producer": 24, "consumer": 240}, "attention",
     "gemm", "row", "k", "n"]
)  # fmt: skip


@given(
    st.sampled_from([VALID, GEMM]),
    st.sampled_from(["sm_90a", "sm_100a"]),
    st.dictionaries(st.sampled_from([*KEYS, "junk"]), VALUES, max_size=2),
)
def test_the_schema_takes_what_the_loader_takes(
    validator: Any, valid: dict[str, object], arch: str, change: dict[str, object]
) -> None:
    config = {**valid, "arch": arch, **change}
    try:
        config_from_data(config, "x")
    except ConfigError as error:
        # Rules between keys, and of what an expression is made of, are not in the schema.
        beyond = (
            "drop one of the two keys",
            " is for keys: paged",
            "activation: '",
            "score: '",
        )
        loads = all(any(words in p.message for words in beyond) for p in error.problems)
    else:
        loads = True
    assert validator.is_valid(config) == loads


def test_every_key_is_described() -> None:
    undescribed = [
        key
        for model in models(editor_schema())
        for key, node in model["properties"].items()
        if not node.get("description")
    ]

    assert undescribed == []


def test_a_name_is_optional_whatever_the_family_and_architecture() -> None:
    for model in models(editor_schema()):
        required = ["kernel", "arch", "dtype"]
        required += ["depth"] if "depth" in model["properties"] else []
        assert model["required"][: len(required)] == required
        assert "name" not in model["required"]


def test_the_schema_carries_no_markup() -> None:
    assert "``" not in json.dumps(editor_schema())


ROOT = Path(__file__).resolve().parents[2]
LAUNCH = """\
block: 256
arguments:
- {name: source, make: arange, shape: [256], dtype: float32}
- {zeros: true}
- {scalar: 2.0, dtype: float32}
max_memory: 8GiB
seeds: [3, 4]
"""


def schema_printed(kind: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"fa4gen {kind}"
    return jsonschema.Draft202012Validator(schema)


def test_sweeps_and_tables_that_ship_fit_their_schemas(capsys) -> None:
    sweeps, tables = schema_printed("sweep", capsys), schema_printed("table", capsys)
    for folder, fitting, other in (("sweeps", sweeps, tables), ("tuned", tables, sweeps)):
        files = list((data_root("configs") / folder).rglob("*.yaml"))
        assert files
        for path in files:
            data = yaml.safe_load(path.read_text())
            fitting.validate(data)
            assert not other.is_valid(data)


def test_projects_of_the_examples_fit_their_schema(capsys) -> None:
    projects = schema_printed("project", capsys)
    files = [ROOT / "fa4gen.toml", *ROOT.glob("examples/*/fa4gen.toml")]
    assert len(files) > 3
    for path in files:
        projects.validate(tomllib.loads(path.read_text()))


def test_a_launch_file_fits_its_schema(capsys) -> None:
    schema_printed("launch", capsys).validate(yaml.safe_load(LAUNCH))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sweep", "base: d128_causal_bf16\nmatrix: {depth: []}"),
        ("sweep", "matrix: {depth: [64]}"),
        ("sweep", "base: {}\nexclud: []"),
        ("project", "vendor: [{into: x, prefix: Acme}]"),
        ("project", "configs: kernels"),
        ("launch", LAUNCH.replace("block: 256", "block: 0")),
        ("launch", LAUNCH.replace("zeros: true", "zeros: 1")),
        ("launch", LAUNCH.replace("make: arange", "mak: arange")),
        ("table", "kernels: []"),
        ("table", "kernels: [a]\nregions: [{where: {rows: [1, 2, 3]}, kernel: a}]"),
        ("table", "tables: {a: {base: b}}"),
    ],
)
def test_forms_that_readers_refuse_fit_no_schema(kind: str, text: str, capsys) -> None:
    assert not schema_printed(kind, capsys).is_valid(yaml.safe_load(text))
