"""The folder's self-test where there is no GPU: what it checks, says and refuses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.vendoring.stranger.tools import Objects, call


@dataclass(frozen=True)
class Mistake:
    path: str
    old: str
    new: str
    compiled_again: tuple[str, ...]
    said: str


MISTAKES = {
    "machine code": Mistake(
        "cubins/acme_d64_dense_small_bf16.c",
        "127,69,",
        "127,70,",
        ("cubins/acme_d64_dense_small_bf16.c",),
        "the machine code has SHA-256",
    ),
    "schedule": Mistake(
        "src/acme_internal.h",
        "#define GROUP_ROWS 2048",
        "#define GROUP_ROWS 1024",
        ("test/selftest.c",),
        "schedule 0 is not the generator's",
    ),
    "kernels out of order": Mistake(
        "test/selftest.c",
        '"acme_fa4_d64_dense_bf16", "sm_100a"',
        '"acme_fa4_d64_dense_bf16", "sm_90a"',
        ("test/selftest.c",),
        "made for sm_100a, expected sm_90a",
    ),
}


def without_gpu(said: str) -> None:
    if "no GPU" not in said:
        pytest.skip("there is a GPU here: the self-test ran")


def test_it_says_what_was_checked_and_that_nothing_was_run(compiled: Objects) -> None:
    said = call(compiled.build / "selftest", "--quick", cwd=compiled.build)
    without_gpu(said)
    assert said.endswith("checked 3 hashes and 68 schedules; nothing was run\n")


def test_one_kernel_can_be_chosen(compiled: Objects) -> None:
    for name in ("gemm_bf16_residual_sm90", "acme_gemm_bf16_residual_sm90"):
        said = call(compiled.build / "selftest", "--quick", "--kernel", name, cwd=compiled.build)
        assert "library: passed: 1 hashes" in said


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


@pytest.mark.parametrize("name", MISTAKES)
def test_a_damaged_library_fails(objects: Objects, name: str) -> None:
    mistake = MISTAKES[name]
    place = objects.folder / mistake.path
    text = place.read_text()
    assert mistake.old in text
    place.write_text(text.replace(mistake.old, mistake.new, 1))
    for path in mistake.compiled_again:
        objects.compile(objects.folder / path)
    program = objects.link("selftest", sorted(objects.build.glob("*.o")))
    said = call(program, "--quick", cwd=objects.build, status=1)
    assert "FAILED" in said
    assert mistake.said in said
