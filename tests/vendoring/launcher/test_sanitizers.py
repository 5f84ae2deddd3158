"""Random calls of the launcher under the sanitizers of the compiler, also by many threads."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fa4gen.errors import CompileError
from fa4gen.vendoring.host_build import INTERPOSER, compile_c, find_c_compiler
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.families import problems_of
from tests.vendoring.launcher.shipped import shipped_plans, write_launcher

KERNELS = (
    "d128_causal_bf16",
    "d128_dense_bf16",
    "d512_causal_bf16",
    "d64_dense_small_bf16",
    "d128_causal_tma_store_fp16",
    "fa4_d128_causal_fp8",
    "depth512_window_fp16",
    "gemm_bf16_residual_sm90",
    "gemm_bf16_mn_major_sm90",
    "gemm_bf16_bias_gelu",
    "gemm_bf16_pair_dynamic",
    "gemm_bf16_pair_residual_sm103",
)
ARCHITECTURES = ("sm_90a", "sm_100a", "sm_103a")
MULTIPROCESSORS = (132, 1, 77, 148)
"""The multiprocessors of each architecture; replay.c has the same."""
EXAMPLES = 30
"""The examples of each kernel."""


def recorded(launcher, name) -> list[bytes]:
    """Random calls of a kernel, with the status that the launcher without a sanitizer gives."""
    plan = shipped_plans()[name]
    of_family = problems_of(plan)
    problems = st.one_of(of_family.sound_problems(plan), of_family.any_problems(plan))
    records = []

    @given(problem=problems, place=st.integers(0, len(MULTIPROCESSORS) - 1))
    @example(problem=of_family.empty_problem(plan), place=0)
    @settings(max_examples=EXAMPLES, database=None)
    def record(problem, place) -> None:
        add(problem.c_args(), place)

    def add(args, place) -> None:
        library = launcher.on(SimulatedDevice(plan.arch, MULTIPROCESSORS[place]))
        status = library.kernel(plan.name).launch(ctypes.byref(args), None)
        launcher.stand_in.reset()
        device = ARCHITECTURES.index(plan.arch) * len(MULTIPROCESSORS) + place
        head = struct.pack("<iiii", KERNELS.index(name), device, status, ctypes.sizeof(args))
        records.append(head + bytes(args))

    record()
    if plan.kernel == "attention":
        # What is wrong first is the same in every folder, also of what no kernel of one takes.
        args = of_family.empty_problem(plan).c_args()
        args.key_descale = args.page_table = 4096
        add(args, 0)
    return records


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    plans = {name: shipped_plans()[name] for name in KERNELS}
    return write_launcher(tmp_path_factory.mktemp("sanitized"), plans)


@pytest.fixture
def calls(folder, launcher) -> Path:
    path = folder / "calls.bin"
    if not path.exists():
        by_kernel = [recorded(launcher, name) for name in KERNELS]
        # in turns, so that threads meet in the first use of every kernel
        turns = max(map(len, by_kernel))
        path.write_bytes(
            b"".join(records[i] for i in range(turns) for records in by_kernel if i < len(records))
        )
    return path


@pytest.mark.parametrize(("sanitizer", "threads"), [("address,undefined", 1), ("thread", 9)])
def test_random_calls_are_clean(folder, calls, launcher, sanitizer, threads) -> None:
    program = folder / f"replay_{sanitizer.partition(',')[0]}"
    (folder / "interposer.c").write_text(INTERPOSER)
    sources = [
        *sorted((folder / "src").glob("*.c")),
        *sorted((folder / "cubins").glob("*.c")),
        folder / "interposer.c",
        Path(__file__).parent / "replay.c",
    ]
    flags = [
        "-g", "-O1", "-pthread", f"-I{folder / 'include'}", f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=all", "-Wl,--wrap=dlopen",
        f'-DSTAND_IN="{launcher.stand_in.path}"',
    ]  # fmt: skip
    if not program.exists():
        try:
            compile_c(find_c_compiler(), flags, sources, program)
        except CompileError as error:
            if "cannot find" in str(error):
                pytest.skip(f"the compiler has no -fsanitize={sanitizer}")
            raise
    made = subprocess.run(
        [str(program), str(calls), str(threads)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"},
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert f"{threads} threads, 0 failures" in made.stdout
