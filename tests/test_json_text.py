from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.json_text import parse_json
from fa4gen.render.manifest import read_manifest
from fa4gen.sweep.record import read_line
from fa4gen.tune.search.record import read_record

if TYPE_CHECKING:
    from pathlib import Path

BRACKETS = "[" * 100_000


@pytest.mark.parametrize("parse", [parse_json, read_line, read_record])
def test_brackets_by_the_thousand_are_wrong_text_like_other_text(parse) -> None:
    with pytest.raises(ValueError, match="too many brackets"):
        parse(BRACKETS)


def test_a_manifest_of_brackets_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    path.write_text(BRACKETS)
    assert read_manifest(path) is None
