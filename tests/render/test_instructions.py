from __future__ import annotations

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import TemplateError
from fa4gen.render.environment import open_templates
from fa4gen.render.instructions import called, code_words, definitions, put_in
from fa4gen.render.render import render, template_places

TYPES = """\
using uint32 = unsigned int;
using uint64 = unsigned long long;

struct alignas(64) Map {
  uint64 words[16];
};
"""
COPIES = """\
// ---- copies ----
// Of tensors.

// Which data leaves first.
constexpr uint64 kFirst = 1;
constexpr uint64 kLast = 2;

// Into shared memory; store() is the way back.
template <uint32 kBytes>
__device__ __forceinline__ void load(const Map& map, uint32 to) {
  asm volatile("copy store kLast %0;" ::"r"(to) : "memory");
}

__device__ __forceinline__ void load_first(const Map& map) { load<16>(map, kFirst); }

__device__ __forceinline__ constexpr uint32 store(uint32 from) { return from; }
"""


def kept(words: str) -> str:
    families = {"types": TYPES.split("\n"), "copies": COPIES.split("\n")}
    return put_in("\x03", families, called(families, code_words(words)))


def test_what_is_called_comes_with_what_it_calls_and_its_heading() -> None:
    assert (
        kept("void f() { load_first(map); }  // store(1)")
        == """\
using uint32 = unsigned int;
using uint64 = unsigned long long;

struct alignas(64) Map {
  uint64 words[16];
};

// ---- copies ----
// Of tensors.

// Which data leaves first.
constexpr uint64 kFirst = 1;

// Into shared memory; store() is the way back.
template <uint32 kBytes>
__device__ __forceinline__ void load(const Map& map, uint32 to) {
  asm volatile("copy store kLast %0;" ::"r"(to) : "memory");
}

__device__ __forceinline__ void load_first(const Map& map) { load<16>(map, kFirst); }"""
    )


def test_what_nothing_calls_is_left_out_with_its_family() -> None:
    assert kept("uint64 x;") == "using uint64 = unsigned long long;"
    assert kept('f("load"); // load') == "// The kernel uses none of them."
    assert kept("store(1)").splitlines()[-1].endswith("{ return from; }")
    assert "load" not in kept("store(1)")


def test_definitions_know_their_names_and_words() -> None:
    found = {name: d for d in definitions(COPIES.split("\n")) for name in d.names}
    assert set(found) == {"kFirst", "kLast", "load", "load_first", "store"}
    assert {"Map", "uint32", "asm"} <= found["load"].words
    assert not {"store", "copy", "kLast", "memory"} & found["load"].words


def gemm(**keys: object):
    loaded = load_mapping(
        {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", "name": "small", **keys}, "small"
    )
    return build_plan(loaded.config), loaded


def test_templates_that_a_kernel_has_nothing_of_do_not_count_as_used() -> None:
    names = render(*gemm()).templates
    assert "device/ptx/tcgen05.cuh.j2" in names
    assert not {
        "device/ptx/wgmma.cuh.j2",
        "device/ptx/packed.cuh.j2",
        "device/ptx/mbarrier_slot.cuh.j2",
    } & set(names)


def test_lines_of_instructions_trace_back_to_their_family() -> None:
    plan, loaded = gemm()
    templates = open_templates()
    lines = render(plan, loaded, templates).files["small_device.cuh"].split("\n")
    places = template_places(plan, loaded, templates, "small_device.cuh")
    at = next(i for i, line in enumerate(lines) if " mbarrier_wait(uint32 barrier" in line)
    assert places[at].source.name == "device/ptx/mbarrier.cuh.j2"
    assert places[at].text == lines[at]


def test_mistakes_in_a_family_are_reported_at_their_line(tmp_path) -> None:
    (tmp_path / "device/ptx").mkdir(parents=True)
    family = tmp_path / "device/ptx/fence.cuh.j2"
    family.write_text("// fences\n\nvoid f() { {{ plan.archh }} }\n")
    with pytest.raises(TemplateError) as caught:
        render(*gemm(), open_templates(tmp_path))
    [problem] = caught.value.problems
    assert (problem.file.endswith("device/ptx/fence.cuh.j2"), problem.line) == (True, 3)
    assert "has no field 'archh'" in problem.message

    family.write_text(
        "// fences\n\n__device__ __forceinline__ void fence_proxy_async_shared() {} \n"
    )
    with pytest.raises(TemplateError) as caught:
        render(*gemm(), open_templates(tmp_path))
    [problem] = caught.value.problems
    assert (problem.file.endswith("device/ptx/fence.cuh.j2"), problem.line) == (True, 3)
    assert "blanks at the end of a line" in problem.message
