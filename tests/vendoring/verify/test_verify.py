"""``verify_folder``: what lies in the folder is what is proved, and what is wrong is said."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import CompileError, ConfigError, MissingCapabilityError
from fa4gen.vendoring.cubin_check import compare_cubin, cubin_compiler_version
from fa4gen.vendoring.kernels_on_disk import read_contents
from fa4gen.vendoring.verify import verify_folder
from tests.vendoring.verify.builds import PREFIX, SEED

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.vendoring.verify import FolderVerdict
    from tests.vendoring.verify.builds import Builds

pytestmark = pytest.mark.compile

SOFTMAX, PRODUCT, DYNAMIC = f"{PREFIX}_softmax", f"{PREFIX}_product", f"{PREFIX}_dynamic"


def edit(place: Path, old: str, new: str) -> None:
    text = place.read_text()
    assert text.count(old) == 1, (place, old)
    place.write_text(text.replace(old, new))


def append(place: Path, text: str) -> None:
    place.write_text(place.read_text() + text)


def keep_only(folder: Path, *symbols: str) -> None:
    for manifest in (folder / "kernels").glob("*.json"):
        if manifest.stem not in symbols:
            manifest.unlink()


def verify(folder: Path, *patterns: str, **options) -> list[FolderVerdict]:
    return verify_folder(folder, seed=SEED, patterns=patterns, emulate=True, **options)


def complaints(verdict: FolderVerdict) -> str:
    found = [problem.message for problem in verdict.verdict.problems]
    found += [f"{one.check}: {one.message}" for c in verdict.verdict.cases for one in c.failures]
    return "\n".join(found)


def test_all_kernels_of_a_folder_are_proved(builds: Builds) -> None:
    said = []
    verdicts = verify(builds.folder, "size/1*", progress=said.append)
    assert [one.symbol for one in verdicts] == sorted(f"{PREFIX}_{name}" for name in builds.kernels)
    assert said == verdicts
    for one in verdicts:
        assert complaints(one) == ""
        assert one.passed
        assert one.verdict.proof == "emulated"
        assert one.verdict.seed == SEED
        assert one.verdict.num_cases == len(one.verdict.cases) == 1
        assert one.cubin == "as compiled from kernels/"
        assert one.notes == ()


def test_processes_share_kernels_and_cases(folder: Path) -> None:
    keep_only(folder, PRODUCT, DYNAMIC)
    for one in verify(folder, "size/*", jobs=4):  # two processes for each of the two
        assert one.passed, complaints(one)
        assert len(one.verdict.cases) == 2


def test_an_edited_kernel_that_leaves_the_counter_is_refused(folder: Path) -> None:
    keep_only(folder, SOFTMAX)
    edit(folder / "kernels" / f"{SOFTMAX}.cu", "    tile_counter[0] = 0;\n", "")
    (verdict,) = verify(folder, "size/64")
    assert not verdict.passed
    assert "bytes of the workspace (32) are not zero after the launch" in complaints(verdict)
    assert f"is not what kernels/{SOFTMAX}.cu compiles to" in complaints(verdict)


def test_an_edited_comment_changes_nothing(folder: Path) -> None:
    keep_only(folder, DYNAMIC)
    append(folder / "kernels" / f"{DYNAMIC}.cu", "// Ours.\n")
    (verdict,) = verify(folder, "size/1x1x1")
    assert verdict.passed, complaints(verdict)
    assert verdict.cubin == "as compiled from kernels/"


def test_an_edited_launcher_is_what_is_proved(folder: Path) -> None:
    keep_only(folder, PRODUCT)
    edit(folder / "src" / "launcher.c", "(float)args->alpha;", "(float)args->alpha + 1;")
    (verdict,) = verify(folder, "size/33x24x40")
    assert not verdict.passed
    assert "numbers" in complaints(verdict)


def test_a_kernel_that_does_not_compile_is_its_verdict(folder: Path) -> None:
    keep_only(folder, PRODUCT, DYNAMIC)
    append(folder / "kernels" / f"{DYNAMIC}.cu", "not CUDA\n")
    dynamic, product = verify(folder, "size/1x1x1")
    assert not dynamic.passed
    assert dynamic.verdict.proof == "rendered"
    assert dynamic.verdict.exit_status == 1
    assert f"{DYNAMIC}.cu" in str(dynamic.verdict.problems[0])
    assert product.passed, complaints(product)


def test_a_damaged_cubin_is_refused(folder: Path) -> None:
    keep_only(folder, SOFTMAX)
    place = folder / "cubins" / f"{SOFTMAX}.c"
    lines = place.read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith("    127,69,"))
    lines[row] = lines[row].replace("127", "126", 1)
    place.write_text("\n".join(lines) + "\n")
    (verdict,) = verify(folder, "size/1")
    assert not verdict.passed
    assert "its cubin cannot be loaded" in complaints(verdict)


def test_a_launcher_that_does_not_compile_is_an_error(folder: Path) -> None:
    append(folder / "src" / "launcher.c", "not C\n")
    with pytest.raises(CompileError, match=r"cannot compile(.|\n)*launcher\.c"):
        verify(folder)


def test_a_function_that_is_not_there_is_named(folder: Path) -> None:
    keep_only(folder, SOFTMAX)
    edit(folder / "src" / "launcher.c", f"int {SOFTMAX}(", f"int {SOFTMAX}_no_more(")
    (verdict,) = verify(folder, "size/1")
    assert "the launcher lacks a function" in complaints(verdict)
    assert SOFTMAX in complaints(verdict)


def test_without_a_c_compiler_the_status_says_so(builds: Builds, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(MissingCapabilityError, match="no C compiler") as raised:
        verify(builds.folder)
    assert raised.value.exit_status == 4


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no vendored folder"):
        verify(tmp_path)


def test_an_edited_manifest_is_refused(folder: Path) -> None:
    edit(folder / "kernels" / f"{SOFTMAX}.json", '"rendered"', '"emulated"')
    with pytest.raises(ConfigError, match="manifest was edited"):
        read_contents(folder)


def test_another_plan_is_noticed(folder: Path, monkeypatch) -> None:

    assert all(kernel.replanned == () for kernel in read_contents(folder).kernels)
    from fa4gen.vendoring import kernels_on_disk

    plan = kernels_on_disk.build_plan
    monkeypatch.setattr(kernels_on_disk, "build_plan", lambda *given: replace(plan(*given), BN=96))
    (softmax,) = [k for k in read_contents(folder).kernels if k.symbol == SOFTMAX]
    assert "BN" in softmax.replanned


def test_after_a_crash_no_other_kernel_runs_on_the_gpu(builds: Builds, monkeypatch) -> None:
    """The GPU is made up here; what is compiled and compared is real."""
    from fa4gen.vendoring import verify as module

    def run(built, options, backend, **_):
        return replace(built.verdict(options.seed), stopped=built.name == DYNAMIC)

    gpu = SimpleNamespace(emulates=False)
    monkeypatch.setattr(module.PickVendored, "__call__", lambda self, arch: gpu)
    monkeypatch.setattr("fa4gen.verify.run.verify_built", run)
    dynamic, *others = verify(builds.folder)
    assert dynamic.symbol == DYNAMIC
    assert complaints(dynamic) == ""
    assert len(others) == 4
    for one in others:
        assert complaints(one) == f"not run, because {DYNAMIC} left the GPU unusable"


def test_a_cubin_that_was_not_compared_is_noted(folder: Path, monkeypatch) -> None:
    keep_only(folder, DYNAMIC)
    why = "not compared: another compiler"
    monkeypatch.setattr("fa4gen.vendoring.cubin_check.compare_cubin", lambda *_: (why, ""))
    (verdict,) = verify(folder, "size/1x1x1")
    assert verdict.passed
    assert verdict.cubin == why
    assert verdict.notes == (f"{DYNAMIC}: its cubin was {why}",)


def test_cubins_of_different_compilers_are_not_compared(builds: Builds) -> None:
    compiled = builds.kernels["softmax"].compiled
    other = builds.kernels["product"].compiled.cubin
    assert cubin_compiler_version(compiled.cubin) == compiled.compiler_version
    assert compare_cubin(compiled.cubin, compiled, SOFTMAX) == ("as compiled from kernels/", "")
    said, wrong = compare_cubin(other, compiled, SOFTMAX)
    assert said == ""
    assert "compiles to" in wrong
    newer = replace(compiled, compiler_version="99.1.2")
    said, wrong = compare_cubin(other, newer, SOFTMAX)
    assert said.startswith("not compared")
    assert compiled.compiler_version in said
    assert "99.1.2" in said
    assert wrong == ""
    assert cubin_compiler_version(b"no cubin") == ""


def test_the_folder_tells_its_prefix_and_kernels(builds: Builds) -> None:
    contents = read_contents(builds.folder)
    assert contents.prefix == PREFIX
    for kernel in contents.kernels:
        name = kernel.symbol.removeprefix(f"{PREFIX}_")
        assert kernel.plan.entry_point == builds.kernels[name].plan.entry_point
        assert kernel.source == builds.kernels[name].rendered.files[f"{kernel.symbol}.cu"]
        assert json.loads(kernel.manifest.read_text())["name"] == kernel.symbol
