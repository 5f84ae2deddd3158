"""Kernels that merge partial results: right on all of their cases, and mistakes show."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.callables import compile_config
from fa4gen.config.load import load_mapping
from fa4gen.verify.merge.case import emulated_cases
from tests.kernels.source_mutation import (
    Change,
    assert_numbers_differ,
    assert_right,
    kernel_of,
    verify,
)

pytestmark = [pytest.mark.emulate, pytest.mark.compile]
Keys = dict[str, Any]
MERGE: Keys = {"kernel": "merge", "arch": "sm_90a", "dtype": "bf16", "depth": 96}
KERNELS: dict[str, Keys] = {
    "bf16": MERGE,
    "to fp32": {
        **MERGE,
        "out_dtype": "fp32",
        "depth": 64,
        "rows_in_flight": 1,
        "dependent_launch": True,
    },
    "four rows to fp32": {**MERGE, "out_dtype": "fp32", "depth": 80, "rows_in_flight": 4},
    "fp32 to fp16, no lse": {**MERGE, "dtype": "fp32", "out_dtype": "fp16", "lse": False},
    "fp32 on Blackwell": {**MERGE, "arch": "sm_100a", "dtype": "fp32", "rows_in_flight": 4},
}
LAST = r"(if \(part < num_parts\)) (merge_next<1, false>\(.*\);)"
"""The part that is left is merged."""


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize(
    "types", [("bf16", "bf16"), ("fp16", "fp32"), ("fp32", "bf16"), ("fp32", "fp32")]
)
def test_registers_suffice(types: tuple[str, str], rows: int, arch: str) -> None:
    keys = {"dtype": types[0], "out_dtype": types[1], "rows_in_flight": rows}
    compiled = compile_config(load_mapping({**MERGE, **keys, "arch": arch}, "merge"), fixes=False)
    assert not compiled.kernel.resources.spill_store_bytes


@pytest.mark.parametrize("keys", KERNELS.values(), ids=list(KERNELS))
def test_kernels_are_right_on_all_of_their_cases(keys: Keys) -> None:
    kernel = kernel_of(keys)
    for case in emulated_cases(kernel.plan):
        assert_right(kernel, case.name)


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param("lse/empty", Change(r"counts \? (__float_as_uint\(chunk\.\w\)) : 0", r"\1", 4),
                     id="outputs of empty parts count"),
        pytest.param("lse/all_empty", Change(r"max == .* \? 0\.f : max", "max"),
                     id="-inf less -inf"),
        pytest.param("lse/nan_1",
                     Change(r"(weight_of\(parts)", r"max == negative_infinity() ? 0.f : \1"),
                     id="NaN alone is taken for an empty part"),
        pytest.param("lse/huge",
                     Change(r"\(lse - max\) \* kLog2E", "lse * kLog2E - max * kLog2E"),
                     id="huge numbers are multiplied first"),
        pytest.param("parts/3", Change(r"merged\.sum \*= factor;"), id="older sums stay"),
        pytest.param("parts/3", Change(r"merged\.output\[i\] \*= factor;", ";"),
                     id="older outputs stay"),
        pytest.param("parts/7", Change(r"merged\.max = max;"), id="the maximum is not kept"),
        pytest.param("parts/3", Change(r"constexpr \(!kIsFirst\)", "constexpr (false)"),
                     id="the first group is not rescaled by the second's maximum"),
        pytest.param("batch/3", Change(r"(merge_next<kPartsInFlight, )false", r"\1true"),
                     id="every group begins the sums"),
        pytest.param("parts/3", Change(r"(merge_next<1, )false", r"\1true"),
                     id="the last part of an odd number begins the sums"),
        pytest.param("parts/2", Change(r"begins = kIsFirst && part == 0", "begins = kIsFirst"),
                     id="the second part begins the sums again"),
        pytest.param("parts/3", Change(LAST), id="the last part of an odd number is left out"),
        pytest.param("parts/1", Change(r"num_parts == 0 \? 0 : left", "0"),
                     id="the only part is left out"),
        pytest.param("parts/3", Change(LAST, r"\1 { \2 \2 }"),
                     id="the last part of an odd number counts twice"),
        pytest.param("batch/3", Change(r"(part \+ kPartsInFlight) <= num", r"\1 < num"),
                     id="the last group is a part"),
        pytest.param("parts/2", Change(r"next\[r\]\.chunk \+= part_stride;"),
                     id="a part in place of the next"),
        pytest.param("parts/2", Change(r"next\[r\]\.lse \+= lse_stride;"),
                     id="a log-sum-exp of the part before"),
        pytest.param("batch/3", Change(r"(?<=loaded\[)r(?=\]\.lse\[i\])", "kRowsInFlight - 1 - r"),
                     id="weights of the neighbour's row"),
        pytest.param("parts/7", Change(r"part \+= kPartsInFlight", "part += kPartsInFlight + 1"),
                     id="the last part is taken for one of a group"),
        pytest.param("batch/3", Change(r"(_cast<uint64>\()part_lse_row_stride", r"\g<1>0"),
                     id="a log-sum-exp of another row"),
        pytest.param("batch/3", Change(r"(_cast<uint64>\()parts_batch_stride", r"\g<1>0"),
                     id="parts of the first batch"),
        pytest.param("parts/2", Change(r"log2_approx\(sum\) \* kLn2", "log2_approx(sum)"),
                     id="a logarithm to base 2"),
        pytest.param("lse/all_empty", Change(r"sum == 0\.f \? 0\.f : "), id="zero over zero"),
        pytest.param("lse/equal", Change(r"begins \? weight : merged\.sum \+ weight", "weight"),
                     id="the sum of the last part alone"),
        pytest.param("batch/3", Change(r"max = chunk == r \?.*\n(.*)chunk == r", r"\1false"),
                     id="log-sum-exps of the first row for all"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_in_the_numbers(case: str, change: Change) -> None:
    assert_numbers_differ(kernel_of(MERGE), change, (case,))


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param("place/same", Change(r"__syncthreads\(\);"), id="overwritten too early"),
        pytest.param("batch/3", Change(r"if \(r < left\)", "if (true)"),
                     id="rows past the last are written"),
        pytest.param("batch/3", Change(r" && chunk < left"),
                     id="log-sum-exps of rows past the last are written"),
        pytest.param("batch/3", Change(r"first_row\.head \+ kRowsInFlight <= heads", "true"),
                     id="a row is a head away"),
        pytest.param("lse/empty", Change(r"if \(!together\) to = .*;"),
                     id="a row of the output is a head away"),
        pytest.param("batch/3", Change(r"if \(row < .*(return \{0)", r"\1"),
                     id="every row is of the first batch"),
        pytest.param("batch/3", Change(r"has_rows && (first < num_rows)", r"\1"),
                     id="threads without a chunk take one"),
        pytest.param("parts/2", Change(r"if \(part < num_parts\)"),
                     id="a part past the last of an even number"),
        pytest.param("parts/none", Change(r"num_parts == 0 \? 0 : left", "left"),
                     id="a part where there is none"),
        pytest.param("batch/3", Change(r"at\.head >= problem\.heads", "at.head > problem.heads"),
                     id="a head past the last"),
        pytest.param("batch/3", Change(r"\+\+at\.batch;"), id="the batch does not follow"),
        pytest.param("batch/3", Change(r"at\.row = 0;"), id="a row past the last of a batch"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_by_the_emulator_or_in_memory(case: str, change: Change) -> None:
    assert_found_in_memory(MERGE, change, case)


@pytest.mark.parametrize(
    ("case", "change"),
    [
        pytest.param("parts/1", Change(r"is_odd = ", "is_odd = !"), id="lanes change places"),
        pytest.param("parts/1", Change(r"(other\[i\] = )shuffle_xor\((.*), 1\)", r"\1\2"),
                     id="lanes keep what they should give"),
        pytest.param("parts/1", Change(r"(inverse), 1\)", r"\1, 2)"),
                     id="lanes exchange with the next pair"),
        pytest.param("parts/1", Change(r"output\[i\] : output\[4 \+ i\]",
                                       "output[4 + i] : output[i]"),
                     id="lanes give the quarters that they keep"),
        pytest.param("parts/1", Change(r"(is_odd \? float4\{)other(.*\n.*float4\{)own",
                                       r"\1own\2other"),
                     id="the first store has the second's quarters"),
        pytest.param("parts/1", Change(r"is_odd \? 4 : 0", "0"),
                     id="the odd lane stores from its own chunk on"),
        pytest.param("parts/2", Change(r"while (\(at\.head >=)", r"if \1"),
                     id="a thread's rows wrap once"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_pair_or_of_four_rows_is_found(case: str, change: Change) -> None:
    assert_found_in_memory(KERNELS["four rows to fp32"], change, case)


def assert_found_in_memory(keys: Keys, change: Change, case: str) -> None:
    kernel = kernel_of(keys)
    verdict = verify(kernel.with_code(change.apply(kernel.code)), case, 3)[0]
    failures = {failure.check for one in verdict.cases for failure in one.failures}
    assert failures
    assert failures <= {"emulator", "guard", "inputs", "numbers", "unwritten"}
