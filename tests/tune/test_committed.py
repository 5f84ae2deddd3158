"""load(shapes="auto") follows the tables that come with fa4gen, and says so."""

from __future__ import annotations

import shutil
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import fa4gen
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.config.set_file import read_set
from fa4gen.errors import CompileError, Problem
from fa4gen.resources import data_root
from fa4gen.runtime import device
from fa4gen.runtime.device import DeviceInfo
from fa4gen.tune import kernel_set
from fa4gen.tune.candidates import given_keys
from fa4gen.tune.committed import committed_tables, find_table
from fa4gen.tune.kernel_set import KernelSet
from tests.tune.candidates_of import existing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BASE = "gemm_bf16_sm90"
H200, UNKNOWN = "NVIDIA H200", "NVIDIA H20"
TABLES = committed_tables(H200)


def on_chip(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = DeviceInfo(0, name, (9, 0), 132, 141 << 30, 50 << 20)
    monkeypatch.setattr(device, "find_device", lambda *_: found)


def auto(base: str) -> KernelSet:
    """The set of ``load(base, shapes="auto")`` without tiles that no table names."""
    loaded = load_config(find_configs([base])[0])
    return KernelSet(existing(loaded), tuned=loaded)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were compiled, which here costs nothing."""
    names: list[str] = []

    def compile_one(candidate: Any, **_: Any) -> tuple[Any, bytes]:
        names.append(candidate.name)
        return candidate.plan, b""

    def compile_all(function: Any, tasks: Sequence[Any], *, jobs: int) -> list[Any]:
        assert jobs >= 1
        return [function(task) for task in tasks]

    monkeypatch.setattr(kernel_set, "_compile", compile_one)
    monkeypatch.setattr(kernel_set, "as_callable", lambda plan, _: lambda *_: plan.name)
    monkeypatch.setattr("fa4gen.workers.map_tasks", compile_all)
    return names


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name.partition(".")[0])
def test_auto_follows_the_table_of_the_chip(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_chip(monkeypatch, H200)
    file = read_set(path)
    kernels = auto(file.base)
    assert kernels.table == path
    assert kernels.chip == H200
    assert {region.kernel for region in file.regions} <= set(kernels.names)
    for region in file.regions:
        assert kernels.choose(region.problem) == region.kernel
    assert f"by table {path.name}, then the model" in repr(kernels)
    assert kernels.compiled == ()


def test_a_chip_without_a_table_says_that_the_model_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_chip(monkeypatch, UNKNOWN)
    kernels = auto(BASE)
    assert kernels.table is None
    assert repr(kernels).endswith(f"chip={UNKNOWN!r}, by the model: there is no table)")
    assert committed_tables(UNKNOWN) == committed_tables("") == []


def test_without_a_gpu_it_is_for_the_first_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_device", lambda _: None)
    kernels = fa4gen.load(BASE, shapes="auto")
    assert (kernels.chip, kernels.table is None) == (H200, False)
    assert f"{BASE}_128x240" in kernels.names  # tiles that no table names are candidates, too


def test_a_table_is_for_what_is_computed_not_for_a_name() -> None:
    base = load_config(find_configs([BASE])[0])
    same = load_mapping({**given_keys(base), "BM": 64, "BN": 64}, "mine")
    other = load_mapping({**given_keys(base), "residual": "row"}, BASE)
    found = find_table(same, H200)
    assert found is not None
    assert found.base == BASE
    assert find_table(other, H200) is None


def test_a_table_whose_configs_have_changed_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = load_config(find_configs([BASE])[0])
    copy = tmp_path / "tuned" / "nvidia_h200.yaml"
    copy.parent.mkdir()
    shutil.copy(data_root("configs") / "tuned" / "nvidia_h200.yaml", copy)

    def root(name: str) -> Path:
        return tmp_path if name == "configs" else data_root(name)

    monkeypatch.setattr("fa4gen.resources.data_root", root)
    found = find_table(base, H200)
    assert found is not None
    assert found.path.parent == copy
    tile = next(path for path in found.configs if path.parent == copy)
    line = f"  {tile.name}: {{"
    assert line in copy.read_text()
    copy.write_text(copy.read_text().replace(line, f"{line}num_stages: 2, "))
    assert find_table(base, H200) is None


def test_the_kernels_of_the_table_are_compiled_at_once(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_chip(monkeypatch, H200)
    base = "d192_causal_bf16"
    kernels = auto(base)
    regions = read_set(next(path for path in TABLES if path.name.startswith(base))).regions
    assert compiled == []
    assert set(kernels.compile()) == set(compiled) == {region.kernel for region in regions}
    assert set(kernels.compiled) == set(compiled)


def test_a_call_compiles_what_it_needs_in_one_of_many_threads(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_chip(monkeypatch, H200)
    kernels = auto(BASE)
    a, b = SimpleNamespace(shape=(256, 14336)), SimpleNamespace(shape=(14336, 4096))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(kernels(a, b))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == set(compiled) == {f"{BASE}_64x128"}
    assert len(compiled) == 1


def test_a_tile_of_the_table_that_does_not_compile_gives_way(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    on_chip(monkeypatch, H200)

    def refuse(loaded: Any, **_: Any) -> Any:
        if loaded.config.name == f"{BASE}_64x128":
            raise CompileError(Problem("registers are spilled"))
        return SimpleNamespace(plan=loaded.config, kernel=SimpleNamespace(cubin=b""))

    monkeypatch.setattr(kernel_set, "compile_config", refuse)
    monkeypatch.setattr(kernel_set, "as_callable", lambda plan, _: lambda *_: plan.name)
    kernels = auto(BASE)
    a, b = SimpleNamespace(shape=(256, 14336)), SimpleNamespace(shape=(14336, 4096))
    assert kernels.choose("256x4096x14336") == f"{BASE}_64x128"
    other = kernels(a, b)
    assert other != f"{BASE}_64x128"
    assert kernels.choose("256x4096x14336") == other
    assert compiled == []
