"""The folder's self-test where there is no GPU: what it checks, says and refuses."""

from __future__ import annotations

import pytest

from tests.vendoring.stranger.tools import Objects, call


def test_it_says_that_nothing_was_run(compiled: Objects) -> None:
    said = call(compiled.build / "selftest", "--quick", cwd=compiled.build)
    if "no GPU" not in said:
        pytest.skip("there is a GPU here: the self-test ran")
    assert said.startswith("library: passed: 3 kernels\nno GPU (")
    assert said.endswith("): nothing was run\n")


def test_one_kernel_can_be_chosen(compiled: Objects) -> None:
    for name in ("gemm_bf16_residual_sm90", "acme_gemm_bf16_residual_sm90"):
        said = call(compiled.build / "selftest", "--quick", "--kernel", name, cwd=compiled.build)
        assert "library: passed: 1 kernels" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kernel", "d64"), "this folder has no kernel d64"),
        (("--slow",), "a wrong option, or no value after it: --slow"),
        (("--kernel",), "a wrong option, or no value after it: --kernel"),
        (("--seed", "1x"), "a wrong option, or no value after it: --seed"),
    ],
)
def test_wrong_calls_are_refused(compiled: Objects, words: tuple[str, ...], said: str) -> None:
    assert said in call(compiled.build / "selftest", *words, cwd=compiled.build, status=2)


def test_a_struct_of_another_size_does_not_compile(objects: Objects) -> None:
    place = objects.folder / "include/acme.h"
    text = place.read_text()
    place.write_text(text.replace("  double softmax_scale;", "  double more, softmax_scale;"))
    source = objects.folder / "test/selftest.c"
    command = (objects.compiler, *objects.flags, "-fsyntax-only", source)
    said = call(*command, cwd=objects.build, status=None)
    assert "size_of_attention_args" in said
    assert "place_of_scale" in said
    assert "place_of_query" not in said
    place.write_text(text)
    assert call(*command, cwd=objects.build) == ""


def test_kernels_out_of_order_are_found(objects: Objects) -> None:
    place = objects.folder / "test/selftest.c"
    text = place.read_text()
    row = '"acme_fa4_d64_dense_bf16", "sm_100a"'
    assert row in text
    place.write_text(text.replace(row, row.replace("sm_100a", "sm_90a"), 1))
    objects.compile(place)
    program = objects.link("selftest", sorted(objects.build.glob("*.o")))
    said = call(program, "--quick", cwd=objects.build, status=1)
    assert "acme_fa4_d64_dense_bf16: FAILED: made for sm_100a, expected sm_90a" in said
