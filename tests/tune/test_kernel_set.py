"""A set of kernels: what it picks, how often it thinks, what it refuses."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fa4gen
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.config.set_file import Region, is_set_file, read_set
from fa4gen.errors import ArgumentError, CompileError, ConfigError, Problem
from fa4gen.runtime import device
from fa4gen.runtime.device import DeviceInfo
from fa4gen.runtime.gemm import GemmKernel
from fa4gen.tune import kernel_set
from fa4gen.tune.candidates import find_candidates
from fa4gen.tune.kernel_set import KernelSet, all_kernels, open_set

if TYPE_CHECKING:
    from pathlib import Path

BASE = "gemm_bf16_sm90"
M16, WIDE = "gemm_bf16_m16_sm90", "gemm_bf16_192x176_pair_sm90"


class Recorded:
    """In place of a launcher: notes the calls that it gets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any, **options: Any) -> str:
        self.calls.append((arguments, options))
        return self.name

    def prepare(self, *arguments: Any, **options: Any) -> str:
        del arguments, options
        return f"prepared {self.name}"


class Shaped:
    """An array's shape, and nothing else."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that were compiled, which here costs nothing."""
    names: list[str] = []

    def compile_one(candidate: Any, **options: Any) -> tuple[Any, bytes]:
        del options
        names.append(candidate.name)
        return candidate.plan, b""

    monkeypatch.setattr(kernel_set, "_compile", compile_one)
    monkeypatch.setattr(kernel_set, "as_callable", lambda plan, _: Recorded(plan.name))
    return names


def some_set(*names: str, **options: Any) -> KernelSet:
    loaded = [load_config(find_configs([name])[0]) for name in names]
    candidates = [
        kernel_set.Candidate(one, kernel_set.build_plan(one.config), "config", {}) for one in loaded
    ]
    return KernelSet(candidates, chip="NVIDIA H200", **options)


def test_it_picks_by_shape_and_compiles_what_it_needs(built: list[str]) -> None:
    kernels = some_set(BASE, M16, WIDE)
    assert kernels.compiled == ()
    few, many = Shaped(16, 14336), Shaped(4096, 14336)
    weight = Shaped(14336, 4096)
    assert kernels(few, weight) == M16
    assert kernels(few, weight) == M16
    assert kernels(many, weight, out="out", alpha=2.0) == BASE
    assert kernels.prepare(Shaped(4104, 4104), Shaped(4104, 4104)) == f"prepared {WIDE}"
    assert built == [M16, BASE, WIDE]
    assert kernels.compiled == (BASE, M16, WIDE)
    assert kernels._kernels[BASE].made.calls == [((many, weight), {"out": "out", "alpha": 2.0})]


def test_arrays_by_name_and_of_numpy(built: list[str]) -> None:
    kernels = some_set(BASE, M16)
    a, b = np.zeros((8, 64), np.float16), np.zeros((64, 4096), np.float16)
    assert kernels(a=a, b=b) == kernels(a, b=b) == kernels(a, b) == M16
    assert built == [M16]


def test_a_shape_that_was_seen_costs_a_look_up(built: list[str]) -> None:
    """Counted as Python calls, which no machine's speed changes."""
    kernels = some_set(BASE, M16, WIDE)
    a, b = Shaped(16, 4096), Shaped(4096, 4096)
    kernels(a, b)
    calls: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)
        elif event == "c_call":
            calls.append(argument.__name__)

    sys.setprofile(note)
    try:
        kernels(a, b)
    finally:
        sys.setprofile(None)
    calls = [name for name in calls if name != "setprofile"]
    # the kernel's own call is the last one, with the recording in it
    words = ["__call__", "_kernel_for", "call_key", "get", "get", "__call__", "append"]
    assert calls == words


def test_picks_are_kept_up_to_a_limit(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_set, "SHAPES_KEPT", 3)
    kernels = some_set(BASE)
    for m in range(1, 9):
        kernels(Shaped(m, 64), Shaped(64, 64))
    assert len(kernels._picked) <= 3
    assert built == [BASE]


def test_a_region_of_a_table_goes_before_the_model(built: list[str]) -> None:
    regions = [Region(where={"m": (1, 20), "n": (4096, 4096)}, kernel=WIDE)]
    kernels = some_set(BASE, M16, WIDE, regions=regions)
    assert kernels.choose("16x4096x14336") == WIDE
    assert kernels.choose("21x4096x14336") != WIDE
    assert kernels.choose("16x8192x4096") == M16
    assert built == []


def test_several_threads_compile_a_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, compiled = threading.Barrier(4), []

    def slow(candidate: Any, **options: Any) -> tuple[Any, bytes]:
        del options
        compiled.append(candidate.name)
        return candidate.plan, b""

    monkeypatch.setattr(kernel_set, "_compile", slow)
    monkeypatch.setattr(kernel_set, "as_callable", lambda plan, _: Recorded(plan.name))
    kernels = some_set(BASE, M16)

    def call() -> None:
        begun.wait()
        kernels(Shaped(16, 4096), Shaped(4096, 4096))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiled == [M16]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Shaped(16, 64), Shaped(32, 64)), r"b: expected .*k = 64, got shape \(32, 64\)"),
        ((Shaped(16), Shaped(16, 64)), r"a: expected .*got shape \(16,\)"),
        ((Shaped(16, 64),), "b: expected an array, got nothing"),
        ((), "a: expected an array"),
        ((3, Shaped(1, 1)), "a"),
    ],
)
def test_wrong_arrays_are_refused(
    arguments: tuple[Any, ...], message: str, built: list[str]
) -> None:
    with pytest.raises(ArgumentError, match=message):
        some_set(BASE)(*arguments)
    assert built == []


def test_all_kernels_of_a_config() -> None:
    kernels = all_kernels(load_config(find_configs([BASE])[0]))
    assert {BASE, M16, WIDE, f"{BASE}_128x144"} <= set(kernels.names)
    assert kernels.choose("1536x1536x8192") == f"{BASE}_128x144_evict"
    with pytest.raises(ConfigError, match="not the problem"):
        kernels.choose("16 rows")


SET = "kernels:\n- gemm_bf16_sm90\n- ./few.yaml\nchip: NVIDIA H200\n"
FEW = "extends: gemm_bf16_m16_sm90\n"


@pytest.fixture
def set_path(tmp_path: Path) -> Path:
    path = tmp_path / "layers.set.yaml"
    path.write_text(SET)
    (tmp_path / "few.yaml").write_text(FEW)
    return path


def test_a_set_file(set_path: Path) -> None:
    assert is_set_file(set_path)
    kernels = open_set(set_path)
    assert kernels.names == (BASE, "few")
    assert kernels.choose("16x4096x4096") == "few"
    assert kernels.choose("4096x4096x4096") == BASE


def test_a_set_is_no_config_of_its_folder(set_path: Path) -> None:
    folder = set_path.parent
    (folder / "x.tuning.yaml").write_text(SET)
    for named in (folder, folder / "*.yaml"):
        assert [path.name for path in find_configs([named])] == ["few.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernels: []\n", r"layers\.set\.yaml:1:\d+: kernels: .* a list of at least 1 entry"),
        ("kernels: [gemm_bf16_sm90, nothing_here]\n", r":1:27: nothing_here: no such file"),
        ("kernels: [gemm_bf16_sm90, gemm_bf16_sm90]\n", "named twice"),
        ("kernel: [gemm_bf16_sm90]\n", "kernels"),
        ("- a\n", "a set of kernels is a mapping"),
        ("kernels: [gemm_bf16_sm90]\nregions: [{where: {m: 0}, kernel: gemm_bf16_sm90}]\n", ":2:"),
        (
            "kernels: [gemm_bf16_sm90]\nregions: [{where: {m: 1}, kernel: another}]\n",
            r":2:\d+: another is no kernel of this file",
        ),
    ],
)
def test_a_wrong_set_file_is_refused(set_path: Path, text: str, message: str) -> None:
    set_path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_set(set_path)


@pytest.mark.parametrize(
    ("capability", "chip", "expected"),
    [
        ((10, 0), "", "gemm_nvfp4_pair"),
        ((10, 3), "", "ultra"),
        ((10, 7), "", "gemm_nvfp4_pair_sm100f"),
        ((10, 3), "NVIDIA B200", "ultra"),  # the GPU that is present decides what runs
        (None, "NVIDIA B300", "ultra"),
        (None, "NVIDIA B200", "gemm_nvfp4_pair"),
        (None, "", "gemm_nvfp4_pair"),
    ],
)
def test_of_kernels_for_several_architectures_one_that_runs_is_picked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int] | None,
    chip: str,
    expected: str,
) -> None:
    (tmp_path / "ultra.yaml").write_text(
        "kernel: gemm\narch: sm_103a\ndtype: fp4_e2m1\nscales: nvfp4\ncta_group: 2\n"
    )
    path = tmp_path / "family.set.yaml"
    names = ("gemm_nvfp4_pair", "./ultra.yaml", "gemm_nvfp4_pair_sm100f")
    path.write_text(
        f"chip: {chip}\n" * bool(chip) + "kernels:\n" + "".join(f"- {name}\n" for name in names)
    )
    gpu = None if capability is None else DeviceInfo(0, "Some GPU", capability, 148, 1, 1)
    monkeypatch.setattr(device, "find_device", lambda *archs: gpu)
    kernels = open_set(path)
    assert kernels.choose("4096x4096x4096") == expected
    assert "arch='sm_100a, sm_103a, sm_100f'" in repr(kernels)


def test_kernels_that_compute_something_else_are_refused(set_path: Path) -> None:
    set_path.write_text("kernels: [gemm_bf16_sm90, gemm_bf16_residual_sm90]\n")
    with pytest.raises(ConfigError, match="do not compute the same: residual: none and matrix"):
        fa4gen.load(set_path)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["decode_d128_paged64_bf16", "d128_ragged_causal_bf16"])
def test_kernels_that_no_model_knows_are_refused_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "both.set.yaml"
    path.write_text(f"kernels: [{name}]\n")
    for config in (name, path):
        with pytest.raises(ConfigError, match=f"{name}: only kernels of dense tensors"):
            fa4gen.load(config, shapes="auto")


def test_a_dense_kernel_that_decodes_is_picked_by_shapes(built: list[str]) -> None:
    kernels = all_kernels(load_config(find_configs(["decode_d128_bf16"])[0]))
    assert {"decode_d128_bf16", "decode_d128_rows64_bf16"} <= set(kernels.names)
    query, key = Shaped(8, 8, 64, 128), Shaped(8, 16384, 8, 128)
    # 64 rows of a key head are one tile of 64, and eight of 8 that read the keys again
    assert kernels(query, key) == "decode_d128_rows64_bf16"
    assert kernels(Shaped(32, 1, 64, 128), Shaped(32, 8192, 8, 128)) == "decode_d128_bf16"


def test_kernels_for_given_problems_are_compiled_at_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, set_path: Path
) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    kernels = fa4gen.load(set_path, shapes=["16x4096x14336", "4kx4kx4k", "8x4096x14336"])
    assert kernels.compiled == (BASE, "few")
    made = [kernel.made for kernel in kernels._kernels.values()]
    assert all(isinstance(one, GemmKernel) and one.cubin[:4] == b"\x7fELF" for one in made)
    with pytest.raises(ArgumentError, match="CUDA device"):
        kernels(np.zeros((16, 64), np.uint16), np.zeros((64, 64), np.uint16))
    assert isinstance(fa4gen.load(BASE, shapes="auto"), KernelSet)


def test_a_tile_that_does_not_compile_is_not_picked_again(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As registers of a tile may spill, which its plan does not know."""
    tried: list[str] = []

    def refuse(loaded: Any, **options: Any) -> Any:
        del options
        name = loaded.config.name
        tried.append(name)
        if "128x160" in name or name == BASE:
            raise CompileError(Problem("registers are spilled"))
        return SimpleNamespace(plan=loaded.config, kernel=SimpleNamespace(cubin=b""))

    monkeypatch.undo()
    monkeypatch.setattr(kernel_set, "as_callable", lambda plan, _: Recorded(plan.name))
    monkeypatch.setattr(kernel_set, "compile_config", refuse)
    base = load_config(find_configs([BASE])[0])
    by_name = {one.name: one for one in find_candidates(base)}
    names = ("gemm_bf16_sm90_128x160", "gemm_bf16_sm90_128x160_pair", "gemm_bf16_sm90_64x256")
    picked = some(*(by_name[name] for name in names))
    a, b = Shaped(2048, 4096), Shaped(4096, 2560)
    assert picked.choose("2048x2560x4096") == names[0]
    assert picked(a, b) == names[2]
    assert tried == list(names)
    assert picked(a, b) == names[2]
    assert picked.choose("2048x2560x4096") == names[2]
    assert len(tried) == 3  # neither is compiled again
    again = some(*(by_name[name] for name in names))
    assert again.compile(["2048x2560x4096"]) == (names[2],)
    with pytest.raises(CompileError, match="spilled"):  # of a config that was named
        some(by_name[BASE])(a, b)


def some(*candidates: Any) -> KernelSet:
    return KernelSet(candidates, chip="NVIDIA H200")


def test_kernels_with_scales_are_among_themselves(built: list[str]) -> None:
    """Every tile that may be picked takes the scales of the call."""
    found = fa4gen.load("gemm_fp8_scaled_sm90", shapes="auto")
    for rows in (8, 4096):
        arrays = Shaped(rows, 7168), Shaped(7168, 2112)
        found(*arrays, scale_a="of a", scale_b="of b")
    assert len(built) == 2
    assert all(
        candidate.loaded.config.scales.data() == {"a": "1x128", "b": "128x128", "dtype": "fp32"}
        for candidate in find_candidates(load_config(find_configs(["gemm_fp8_scaled_sm90"])[0]))
    )
