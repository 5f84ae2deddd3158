from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fa4gen.errors import ConfigError, NotCurrentError
from fa4gen.render.render import RenderedKernel
from fa4gen.toolchain.model import CompiledKernel, Finding, Resources
from fa4gen.toolchain.record import output_files, proof_of, write_outputs

MANIFEST = {"name": "k", "plan": {"launch": {"dynamic_shared_bytes": 1000}}, "proof": "rendered"}
RENDERED = RenderedKernel(
    name="k",
    arch="sm_90a",
    family="attention",
    files={"k.cu": "", "k.json": json.dumps(MANIFEST)},
    templates=(),
    template_files=(),
)
KERNEL = CompiledKernel(
    name="k",
    arch="sm_90a",
    ptx="ptx",
    cubin=b"\x7fELF",
    log="ptxas info    : Used 128 registers\nptxas info    : Compile time = 513.352 ms \n",
    compiler="nvrtc",
    compiler_version="13.0.1",
    options=("-arch=sm_90a",),
    resources=Resources(128, 0, 4, 8, 16, 0),
    findings=(),
    cached=False,
    seconds=1.25,
    key="abc",
)
SPILL = Finding("spill", "error", "spilled", "do less", ("a line",))


def test_the_manifest_says_what_the_kernel_takes() -> None:
    files = output_files(RENDERED, KERNEL)
    assert list(files) == ["k.ptx", "k.cubin", "k.log", "k.compile.json"]
    manifest = json.loads(files["k.compile.json"])
    assert manifest["name"] == "k"
    assert manifest["proof"] == "compiled"
    taken = manifest["compile"]
    assert (taken["registers"], taken["spill_store_bytes"]) == (128, 4)
    assert (taken["static_shared_bytes"], taken["dynamic_shared_bytes"]) == (16, 1000)
    assert taken["cubin_bytes"] == 4
    for name in ("k.ptx", "k.cubin", "k.log"):
        assert manifest["outputs"][name] == hashlib.sha256(files[name]).hexdigest()


def test_nothing_depends_on_how_long_it_took() -> None:
    slower = replace(
        KERNEL, seconds=99.0, cached=True, log=KERNEL.log.replace("513.352", "888.000")
    )
    assert output_files(RENDERED, slower) == output_files(RENDERED, KERNEL)


def test_how_far_it_is_proved() -> None:
    assert proof_of(None) == "rendered"
    assert proof_of(KERNEL) == "compiled"
    assert proof_of(replace(KERNEL, findings=(SPILL,))) == "rendered"
    warning = replace(KERNEL, findings=(replace(SPILL, severity="warning"),))
    assert proof_of(warning) == "compiled"


def test_outputs_are_replaced_by_newer_ones(tmp_path: Path) -> None:
    folder = tmp_path / "sm_90a" / "k"
    write_outputs(output_files(RENDERED, KERNEL), folder)
    newer = output_files(RENDERED, replace(KERNEL, cubin=b"\x7fELF2", ptx="ptx 2"))
    paths = write_outputs(newer, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == newer
    assert sorted(paths) == sorted(folder.iterdir())


@pytest.mark.parametrize("name", ["k.ptx", "k.compile.json"])
def test_what_the_user_put_there_is_not_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    outputs = output_files(RENDERED, KERNEL)
    with pytest.raises(NotCurrentError, match="not overwritten") as caught:
        write_outputs(outputs, tmp_path)
    assert name in caught.value.problems[0].file
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]
    write_outputs(outputs, tmp_path, force=True)
    assert (tmp_path / name).read_bytes() == outputs[name]


def test_an_edited_output_is_not_overwritten(tmp_path: Path) -> None:
    write_outputs(output_files(RENDERED, KERNEL), tmp_path)
    (tmp_path / "k.ptx").write_text("edited")
    with pytest.raises(NotCurrentError) as caught:
        write_outputs(output_files(RENDERED, replace(KERNEL, ptx="new")), tmp_path)
    assert [Path(p.file).name for p in caught.value.problems] == ["k.ptx"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot"):
        write_outputs(output_files(RENDERED, KERNEL), tmp_path / "file" / "k")
