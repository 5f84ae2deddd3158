from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from fa4gen.cli.main import main
from fa4gen.config.editor_schema import editor_schema
from fa4gen.config.find import shipped_configs
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
        text = path.read_text()
        validator.validate(yaml.safe_load(text))
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


def test_every_key_is_described() -> None:
    undescribed = [
        key for key, node in editor_schema()["properties"].items() if not node.get("description")
    ]

    assert undescribed == []


def test_the_schema_carries_no_markup() -> None:
    assert "``" not in json.dumps(editor_schema())
