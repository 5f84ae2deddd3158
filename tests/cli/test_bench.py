from __future__ import annotations

import pytest

from fa4gen.cli.main import main
from fa4gen.runtime.device import find_device

no_gpu = pytest.mark.skipif(find_device("sm_90a") is not None, reason="this machine has a GPU")


@no_gpu
def test_without_a_gpu_it_ends_with_status_4(capsys) -> None:
    assert main(["bench", "d128_causal_bf16"]) == 4
    assert "kernels for sm_90a need a GPU of compute capability 9.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shipped", "--sizes", "1k,nonsense"], "'nonsense' is not a number of rows"),
        (["--plot", "x.gif"], "has to end in .svg"),
        (["--rounds", "0"], "0 is not in the range"),
        (["--fa3", "/nowhere/fa3.so"], "does not exist"),
        (["no_such_config"], "no_such_config"),
    ],
)
def test_mistakes_are_reported_before_anything_is_done(
    arguments, message, capsys, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_results_do_not_replace_other_files(capsys, tmp_path) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text("my notes")
    assert main(["bench", "d128_causal_bf16", "--json", str(notes)]) == 2
    assert "--json would replace a file that is not json" in capsys.readouterr().err
    assert notes.read_text() == "my notes"
    assert main(["bench", "d128_causal_bf16", "--json", str(tmp_path)]) == 2
    assert "--json names a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm_bf16", "--sizes", "2k,3xx"], "'3xx' is not a size of a matrix product"),
        (["gemm_bf16", "--fa3", __file__], "--fa3 is for attention"),
        (["d128_causal_bf16", "--sizes", "1kx2kx3kx4k"], "'1kx2kx3kx4k' is not a number of rows"),
        (["gemm_bf16", "d128_causal_bf16"], "these are of 2: 1 of gemm, 1 of attention"),
    ],
)
def test_what_does_not_fit_the_family_is_refused(arguments, message, capsys) -> None:
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("sizes", [[], ["--sizes", "2k,8192x28672x8192"]])
def test_a_matrix_product_is_accepted_up_to_the_gpu(sizes, capsys) -> None:
    if find_device("sm_100a") is not None:
        pytest.skip("this machine has such a GPU")
    assert main(["bench", "gemm/sm_100a/gemm_bf16", *sizes]) == 4
    assert "kernels for sm_100a need a GPU" in capsys.readouterr().err
