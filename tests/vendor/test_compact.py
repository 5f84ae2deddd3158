"""A vendored kernel is shorter than the rendered one, and the same machine code."""

from __future__ import annotations

import json

import pytest

from fa4gen.config.find import find_configs
from fa4gen.designs.build import build_plan
from fa4gen.render.environment import open_templates
from fa4gen.render.manifest import sha256
from fa4gen.render.render import render
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.compile import compile_kernel
from fa4gen.toolchain.elf import Cubin
from fa4gen.vendor.compact import (
    _compared_as_numbers,
    _enumerators,
    compact,
    compact_text,
)
from fa4gen.vendor.documented import documented
from fa4gen.vendor.names import with_prefix
from tests.shipped import loaded

PREFIX = "acme"
RENDERED = """\
constexpr int32 kFirst = 1;   // one
constexpr int32 kSecond = kFirst +
                          1;  // two; and more
constexpr uint32 kAlone = 3;  // three

constexpr float kLn2 = 0.7f;
constexpr uint32 kOperand = 4;
constexpr bool kYes = true;
struct Config {
  static constexpr int32 BM = 64;  // rows
  uint32 at;

  static __device__ __forceinline__ Config start(uint32 first,
                                                 uint32 second) {
    constexpr int32 kOwn = 1;
    return {first + second * kOwn};
  }
};

__device__ __forceinline__ uint32 sum(uint32 first, uint32 (*second)(uint32),
                                      uint32 third) {
  constexpr uint32 kLocal = 5;
  asm("add %0, %1;" ::"n"(kOperand), "r"(first +
                                         third));
}
// __device__ __forceinline__ in a comment stays as short as the rest (
constexpr int32 kLast = 6;
"""
COMPACT = """\
enum : int32 {
  kFirst = 1,   // one
  kSecond = kFirst +
                          1,  // two; and more
};
enum : uint32 { kAlone = 3 };  // three

constexpr float kLn2 = 0.7f;
constexpr uint32 kOperand = 4;
enum : bool { kYes = true };
struct Config {
  enum : int32 { BM = 64 };  // rows
  uint32 at;

  static ACME_FN Config start(uint32 first, uint32 second) {
    constexpr int32 kOwn = 1;
    return {first + second * kOwn};
  }
};

ACME_FN uint32 sum(uint32 first, uint32 (*second)(uint32), uint32 third) {
  constexpr uint32 kLocal = 5;
  asm("add %0, %1;" ::"n"(kOperand), "r"(first +
                                         third));
}
// ACME_FN in a comment stays as short as the rest (
enum : int32 { kLast = 6 };
"""


def test_functions_and_constants() -> None:
    assert compact_text(RENDERED, PREFIX, frozenset({"kOperand"})) == COMPACT


def test_parameters_are_filled_again() -> None:
    text = """\
// Barriers: slots x arrivals
//   query_full  1 x 1  landed,
//       all of it
//
// Tensor memory, by columns:
//   0 to 9  scores
//
// Config sha256 0
// Change the config, not this file, and render it again:
//   fa4gen render acme_k

#include "k_barriers.h"

__device__ __forceinline__ Pair<1, 2> sum_of_all(uint32 first, uint32 (*second)(uint32, uint32),
                                                 const Pair<1, 2>& third = {3, 4},
                                                 uint32 fourth = g(1, 2)) {
  return h(first,
           fourth);
}

#else  // a pass of the build for another target: the kernel is there, and traps

extern "C" __global__ void k(
    const __grid_constant__ TensorMap map,
    const float* __restrict__ values,
    int32 rows) {
  asm volatile("trap;");
}

#endif
"""
    expected = """\
// Barriers and tensor memory: k_barriers.h

#include "k_barriers.h"

ACME_FN Pair<1, 2> sum_of_all(uint32 first, uint32 (*second)(uint32, uint32),
                              const Pair<1, 2>& third = {3, 4}, uint32 fourth = g(1, 2)) {
  return h(first,
           fourth);
}

#else  // a pass of the build for another target: the kernel is there, and traps

extern "C" __global__ void k() {
  asm volatile("trap;");
}

#endif
"""
    assert compact_text(text, PREFIX) == expected


def test_enumerators_are_compared_as_numbers() -> None:
    text = "enum : int32 {\n  kA = 1,\n  kB = 2,\n};\nenum : uint32 { kC = 3 };\n"
    names = frozenset(_enumerators(text))
    assert names == {"kA", "kB", "kC"}
    code = "s(kA == 2 * kB, kA == kB * 2, 2 * kA == kB, x::kB <= kC); f<kA>(kA < x, +kA == kC)"
    assert _compared_as_numbers(code, names) == code.replace("x::kB <=", "+x::kB <=")


@pytest.mark.parametrize(
    "text",
    [
        "__device__ __forceinline__ int f(int a,",
        "__device__ __forceinline__ int f()) {",
        "constexpr int32 kOpen = 1",
        "// Barriers: slots x arrivals",
        "#else  // a pass of the build for another target: the kernel is there, and traps",
        "",
    ],
)
def test_texts_of_other_templates_do_not_fail(text) -> None:
    assert compact_text(text, PREFIX) is not None


def test_a_long_prefix_takes_more_lines() -> None:
    text = """\
__device__ __forceinline__ int f(int number_0, int number_1, int number_2, int number_3, int a,
                                 int b);"""
    expected = """\
A_PREFIX_OF_THIRTY_TWO_CHARACTERS_FN int f(int number_0, int number_1, int number_2, int number_3,
                                           int a, int b);"""
    assert compact_text(text, "a_prefix_of_thirty_two_characters") == expected


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "d128_causal_bf16",
        "d512_ragged_causal_bf16",
        "fa4_d128_causal_fp8",
        "depth512_causal_bf16",
        "decode_d128_bf16",
        "fa4_decode_d128_bf16",
        "gemm_bf16_sm90",
        "gemm_bf16",
    ],
)
def test_the_machine_code_is_the_same_without_its_variables(name) -> None:
    item = loaded(*find_configs((name,)))
    plan = with_prefix(build_plan(item.config), PREFIX)
    rendered = render(plan, item, open_templates())
    vendored = compact(rendered, PREFIX)
    assert sum(map(len, vendored.files.values())) < sum(map(len, rendered.files.values()))
    said = json.loads(vendored.files[f"{plan.name}.json"])["files"]
    assert said == {name: sha256(vendored.files[name]) for name in said}
    before, after = (
        compile_kernel(one.source, one.headers, plan.arch, name=plan.name, cache=Cache.default())
        for one in (rendered, vendored)
    )
    assert code_of(after.cubin) == code_of(before.cubin)
    assert not after.findings
    assert len(after.cubin) < len(before.cubin)


def code_of(cubin: bytes) -> dict[str, bytes]:
    found = {function.name: function.code for function in Cubin(cubin).functions}
    assert found
    return found


def test_constants_with_comments_between_them_are_one_enumeration() -> None:
    text = """\
// one
constexpr int32 kA = 1;

// two,
// of it
constexpr int32 kB = 2;  // b = kC

// ---- another part ----

constexpr int32 kC = 3;
// three
f();
"""
    expected = """\
// one
enum : int32 {
  kA = 1,

  // two,
  // of it
  kB = 2,  // b = kC
};

// ---- another part

enum : int32 { kC = 3 };
// three
f();
"""
    assert compact_text(text, PREFIX) == expected
    assert set(_enumerators(expected)) == {"kA", "kB", "kC"}


def test_parameters_have_their_meaning_behind_them() -> None:
    table = """\
// Launch with 64 threads;
// grid: one
//   map         tensor
//   rows        a long text, which goes on and on and on until there is no more room for it behind
//               a parameter
//   last        the last one
extern "C" __global__ void k(
    const __grid_constant__ TensorMap map,
    const int32* __restrict__ rows,
    int32 other,
    float last) {
"""
    expected = """\
// Launch with 64 threads;
// grid: one
extern "C" __global__ void k(
    const __grid_constant__ TensorMap map,  // tensor
    // a long text, which goes on and on and on until there is no more room for it behind a
    // parameter
    const int32* __restrict__ rows,
    int32 other,
    float last) {  // the last one
"""
    assert documented(table.split("\n")) == expected.split("\n")
