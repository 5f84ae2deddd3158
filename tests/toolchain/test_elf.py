from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.toolchain.elf import Cubin, NotACubinError, elf_size
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.model import Compiler

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def cubin(nvrtc: Compiler, sources: Mapping[str, str]) -> bytes:
    return nvrtc.build(Unit("shared", sources["shared"], {}, "sm_90a")).cubin


def test_what_a_cubin_says_of_its_kernel(compiler: Compiler, sources: Mapping[str, str]) -> None:
    built = compiler.build(Unit("shared", sources["shared"], {}, "sm_90a"))
    (kernel,) = Cubin(built.cubin).entries
    assert kernel.name == "shared_kernel"
    assert f"Used {kernel.registers} registers" in built.log
    assert kernel.static_shared_bytes == 1200
    assert kernel.frame_bytes == 0
    assert len(kernel.code) % 128 == 0


def test_the_stack_frame(compiler: Compiler, sources: Mapping[str, str]) -> None:
    built = compiler.build(Unit("array", sources["array"], {}, "sm_90a"))
    (kernel,) = Cubin(built.cubin).entries
    assert kernel.frame_bytes == 256


def test_kernels_come_before_device_functions(compiler: Compiler) -> None:
    source = (
        "__device__ __noinline__ float a_helper(float x) { return x * x + 1.f; }\n"
        'extern "C" __global__ void z(float* out) { out[0] = a_helper(out[1]); }\n'
        'extern "C" __global__ void y(float* out) { out[0] = a_helper(out[2]); }\n'
    )
    cubin = Cubin(compiler.build(Unit("k", source, {}, "sm_90a")).cubin)
    assert [entry.name for entry in cubin.entries] == ["y", "z"]
    assert [f.name for f in cubin.functions][:2] == ["y", "z"]


def test_the_size_is_that_of_the_file(compiler: Compiler, sources: Mapping[str, str]) -> None:
    for line_info in (False, True):
        cubin = compiler.build(Unit("k", sources["spill"], {}, "sm_90a", line_info)).cubin
        assert elf_size(cubin) == len(cubin)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_cut_short(cubin: bytes, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, len(cubin) - 1))
    with pytest.raises(NotACubinError):
        Cubin(cubin[:length])


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=200))
def test_other_files(data: bytes) -> None:
    with pytest.raises(NotACubinError):
        Cubin(data)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_damage_is_an_error_or_survived(cubin: bytes, data: st.DataObject) -> None:
    damaged = bytearray(cubin)
    for _ in range(3):
        damaged[data.draw(st.integers(0, len(cubin) - 1))] = data.draw(st.integers(0, 255))
    try:
        parsed = Cubin(bytes(damaged))
        assert isinstance(parsed.functions, tuple)
    except NotACubinError:
        pass
