from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import CompileError, MissingCapabilityError
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.compile import compile_kernel, find_compiler

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.toolchain.model import CompiledKernel, Compiler

pytestmark = pytest.mark.compile


def compile_report(name: str, sources: Mapping[str, str], compiler: Compiler) -> CompiledKernel:
    return compile_kernel(sources[name], {}, "sm_90a", name=name, compiler=compiler, report=True)


def codes(kernel: CompiledKernel) -> set[str]:
    return {finding.code for finding in kernel.findings}


def test_a_clean_kernel(sources: Mapping[str, str], compiler: Compiler) -> None:
    kernel = compile_kernel(sources["clean"], {}, "sm_90a", name="clean", compiler=compiler)
    assert kernel.clean
    assert kernel.findings == ()
    assert ".target sm_90a" in kernel.ptx
    assert "wgmma.mma_async" in kernel.ptx
    assert b"wgmma_kernel" in kernel.cubin
    assert 16 <= kernel.resources.registers <= 64
    assert kernel.resources.spill_store_bytes == 0
    assert not kernel.cached
    assert kernel.compiler == compiler.name


def test_headers_come_from_memory(compiler: Compiler) -> None:
    source = '#include "sizes.h"\nextern "C" __global__ void k(int* out) { out[0] = kSize; }\n'
    kernel = compile_kernel(
        source, {"sizes.h": "constexpr int kSize = 12345;\n"}, "sm_90a", name="k", compiler=compiler
    )
    assert "12345" in kernel.ptx


def test_the_cubin_is_the_same_each_time(sources: Mapping[str, str], compiler: Compiler) -> None:
    first, second = (compile_report("clean", sources, compiler) for _ in range(2))
    assert first.cubin == second.cubin
    assert first.key == second.key


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_103a", "sm_100f"])
def test_exact_architectures(arch: str, sources: Mapping[str, str], compiler: Compiler) -> None:
    kernel = compile_kernel(sources["shared"], {}, arch, name="shared", compiler=compiler)
    assert f".target {arch}" in kernel.ptx
    assert kernel.resources.static_shared_bytes == 1200


def test_an_unknown_architecture_is_a_missing_capability(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    with pytest.raises(MissingCapabilityError, match="cannot compile for sm_77a"):
        compile_kernel(sources["shared"], {}, "sm_77a", name="shared", compiler=compiler)


def test_serialized_wgmma_is_refused_with_its_line(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(sources["serialized"], {}, "sm_90a", name="serialized", compiler=compiler)
    problems = {problem.message[:5]: problem for problem in caught.value.problems}
    assert {"C7511", "C7517"} <= set(problems)
    assert "serialized due to insufficient register resources" in problems["C7511"].message
    waited = problems["C7517"]
    assert (waited.file, waited.line) == ("serialized.cu", 15)
    assert "wait_group" in waited.remedy


def test_a_missing_fence_is_refused(sources: Mapping[str, str], compiler: Compiler) -> None:
    if compiler.name == "nvrtc" and tuple(map(int, compiler.version.split(".")[:2])) > (13, 0):
        pytest.skip(f"NVRTC {compiler.version} adds missing fences without a word")
    assert "C7519" in codes(compile_report("unfenced", sources, compiler))


def test_ignored_setmaxnreg_is_refused(sources: Mapping[str, str], compiler: Compiler) -> None:
    with pytest.raises(CompileError, match="C7508") as caught:
        compile_kernel(sources["setmaxnreg"], {}, "sm_90a", name="k", compiler=compiler)
    assert "__launch_bounds__" in caught.value.problems[0].remedy


def test_spills_are_refused(sources: Mapping[str, str], compiler: Compiler) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(sources["spill"], {}, "sm_90a", name="spill", compiler=compiler)
    (problem,) = caught.value.problems
    assert problem.message.startswith("spill: registers are spilled to local memory: ")
    assert "bytes spill stores" in problem.message
    assert problem.file == "spill.cu"


def test_spilled_bytes_and_stack_are_counted(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    used = compile_report("spill", sources, compiler).resources
    assert used.registers == 32
    assert used.spill_store_bytes >= 4
    assert used.spill_load_bytes >= 4
    assert used.stack_bytes >= 4


def test_an_array_in_local_memory_is_refused(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    kernel = compile_report("array", sources, compiler)
    assert codes(kernel) == {"stack"}
    assert kernel.resources.stack_bytes == 256
    assert kernel.resources.spill_store_bytes == 0
    (finding,) = kernel.findings
    assert (finding.file, finding.line) == ("array.cu", 4)
    assert finding.places[0].startswith("array.cu:4: ")


def test_warnings_are_reported_and_do_not_fail(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    kernel = compile_kernel(sources["warning"], {}, "sm_90a", name="warning", compiler=compiler)
    (finding,) = kernel.findings
    assert (finding.code, finding.severity, finding.line) == ("source", "warning", 2)
    assert "never_used" in finding.message


def test_an_error_points_to_its_line_and_column(
    sources: Mapping[str, str], compiler: Compiler
) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(sources["undefined"], {}, "sm_90a", name="undefined", compiler=compiler)
    (problem,) = caught.value.problems
    assert problem.place == "undefined.cu:2:12"
    assert "wrong_name" in problem.message


def test_refused_ptx_points_to_the_source(sources: Mapping[str, str], compiler: Compiler) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(sources["bad_ptx"], {}, "sm_90a", name="bad_ptx", compiler=compiler)
    problem = caught.value.problems[0]
    assert (problem.file, problem.line) == ("bad_ptx.cu", 2)
    assert "no.such_instruction;" in problem.message
    assert "bad_ptx.cu:2 (inner)" in problem.message


def test_errors_travel_between_processes(sources: Mapping[str, str], nvrtc: Compiler) -> None:
    with pytest.raises(CompileError) as caught:
        compile_kernel(sources["undefined"], {}, "sm_90a", name="undefined", compiler=nvrtc)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.problems == caught.value.problems


def test_the_cache_gives_back_what_was_compiled(
    sources: Mapping[str, str], nvrtc: Compiler, tmp_path: Path
) -> None:
    cache = Cache(tmp_path)
    args = (sources["warning"], {}, "sm_90a")
    first = compile_kernel(*args, name="k", compiler=nvrtc, cache=cache)
    again = compile_kernel(*args, name="k", compiler=nvrtc, cache=cache)
    assert (first.cached, again.cached) == (False, True)
    assert (again.ptx, again.cubin, again.log) == (first.ptx, first.cubin, first.log)
    assert (again.resources, again.findings) == (first.resources, first.findings)


def test_the_lint_judges_cached_kernels_too(
    sources: Mapping[str, str], nvrtc: Compiler, tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="spill"):
            compile_kernel(
                sources["spill"], {}, "sm_90a", name="k", compiler=nvrtc, cache=Cache(tmp_path)
            )


def test_an_unwritable_cache_is_no_failure(
    sources: Mapping[str, str], nvrtc: Compiler, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "below")
    kernel = compile_kernel(
        sources["clean"], {}, "sm_90a", name="clean", compiler=nvrtc, cache=cache
    )
    assert kernel.clean
    assert "not kept in the cache" in kernel.cache_note


def test_an_unknown_compiler_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="clang"):
        find_compiler("clang")
