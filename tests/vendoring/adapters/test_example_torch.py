"""examples/torch: vendored as its README says, traced without a GPU, run on one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from tests.vendoring.adapters.folders import import_file

EXAMPLE = Path(__file__).parents[3] / "examples/torch"


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Path:
    """A copy of the example with its kernels."""
    folder = tmp_path_factory.mktemp("example") / "torch"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("third_party"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["vendor", "update"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def torch():
    return pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")


def build(example: Path) -> None:
    """Run the README's line that builds the launcher."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    (line,) = re.findall(r"^cd third_party/acme && .*$", (example / "README.md").read_text(), re.M)
    subprocess.run(line, shell=True, check=True, cwd=example)


@pytest.mark.compile
def test_the_launcher_is_built_as_the_readme_says(example) -> None:
    build(example)
    assert (example / "third_party/acme/libacme.so").is_file()


@pytest.mark.compile
def test_the_module_is_traced_as_one_graph(example, torch) -> None:
    block = import_file(example / "block.py", "example_block")
    module = block.Block(heads=2)
    graphs = []

    class TracedError(Exception):
        pass

    def backend(graph, inputs):
        graphs.append(graph)
        raise TracedError

    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    with torch.no_grad(), pytest.raises(Exception, match="TracedError"):
        compiled(torch.zeros(2, 30, 256, dtype=torch.bfloat16))
    (graph,) = graphs
    for kernel in ("d128_causal_bf16", "gemm_bf16_residual_sm90"):
        assert graph.code.count(f"acme.{kernel}") == 1


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")
def test_it_runs(example, torch) -> None:
    build(example)
    ran = subprocess.run(
        [sys.executable, str(example / "block.py")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("relative difference") == 2
