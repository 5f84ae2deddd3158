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
from fa4gen.vendor.compact import compact, compact_text
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

  static ACME_DEVICE Config start(uint32 first,
                                  uint32 second) {
    constexpr int32 kOwn = 1;
    return {first + second * kOwn};
  }
};

ACME_DEVICE uint32 sum(uint32 first, uint32 (*second)(uint32),
                       uint32 third) {
  constexpr uint32 kLocal = 5;
  asm("add %0, %1;" ::"n"(kOperand), "r"(first +
                                         third));
}
// ACME_DEVICE in a comment stays as short as the rest (
enum : int32 { kLast = 6 };
"""


def test_functions_and_constants() -> None:
    assert compact_text(RENDERED, PREFIX, frozenset({"kOperand"})) == COMPACT


def test_a_long_prefix_moves_lines_to_the_right() -> None:
    text = "__device__ __forceinline__ int f(int a,\n" + " " * 33 + "int b);\n"
    prefix = "a_prefix_of_thirty_two_characters"
    first, second, _ = compact_text(text, prefix).split("\n")
    assert first.index("(") + 1 == second.index("int b")


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
