from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import ConfigError
from fa4gen.tune.family import family_called
from fa4gen.tune.search.shapes import read_problems

if TYPE_CHECKING:
    from pathlib import Path

GEMM = family_called("gemm")


def words(tmp_path: Path, name: str, text: str, *texts: str) -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return [GEMM.word(problem) for problem in read_problems(GEMM, texts, path)]


def test_a_list_of_texts_and_mappings(tmp_path: Path) -> None:
    text = "- 16x4096x14336\n- {m: 2, n: 32, k: 64, batch: 8, name: up}\n- 16x4kx14336\n"
    assert words(tmp_path, "a.yaml", text, "1kx1kx1k") == [
        "1024x1024x1024",
        "16x4096x14336",
        "8x2x32x64",
    ]


def test_layers_of_a_model(tmp_path: Path) -> None:
    text = "m: [16, 512]\nlayers:\n- {name: qkv, n: 6144, k: 4096}\n- {n: 4096, k: 14336}\n"
    assert words(tmp_path, "a.yaml", text) == [
        "16x6144x4096",
        "512x6144x4096",
        "16x4096x14336",
        "512x4096x14336",
    ]


def test_csv(tmp_path: Path) -> None:
    text = "layer,m, n,k\nup,16,4096,14336\ndown,32,64,128\n"
    assert words(tmp_path, "a.csv", text) == ["16x4096x14336", "32x64x128"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "- 16x4096\n- 1x1x1\n- {m: 1}\n", r"a\.yaml:1:1: .*not the problem"),
        ("a.yaml", "- 1x1x1\n- {m: 1, k: 2}\n", r"a\.yaml:2:1: n is missing"),
        ("a.yaml", "m: 16\nlayers: [{n: 1, k: 1}]\n", "m is not a list"),
        ("a.yaml", "kernel: gemm\n", "shapes are a list of problems"),
        ("a.yaml", "[]\n", "no problem to tune for"),
        ("a.csv", "rows,cols\n1,2\n", "no column of the first line is an extent"),
        ("a.csv", "m,n,k\n1,2,3\n1,x,3\n", r"a\.csv:3:1: n: 'x'"),
        ("a.csv", "m,n,k\n1,2\n", "k is missing"),
    ],
)
def test_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        words(tmp_path, name, text)
