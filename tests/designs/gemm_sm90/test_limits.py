"""Refusals, and that every suggested fix is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from tests.designs.offers import check_offers, problems_of

Strategy = st.SearchStrategy[HopperGemmConfig]
ConfigOf = Callable[..., HopperGemmConfig]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_every_offer_removes_its_problem_and_brings_no_other(
    any_gemm_config: Strategy, data: st.DataObject
) -> None:
    if not check_offers(data.draw(any_gemm_config)):
        reject()


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"num_stages": 5, "BM": 128, "BN": 256},
            "num_stages",
            "5 * 16384 (a) + 5 * 32768 (b) + 6 * 8192 (epi) + ",
            "Set num_stages: 3; or BN: 128.",
        ),
        (
            {"BM": 192, "BN": 256},
            "BN",
            "a wgmma of 64 x 256 (BN) takes 256 / 2 + 26 = 154, but ptxas compiles it for the 128",
            "Set BN: 192; or BM: 128 and num_consumer_warpgroups: auto.",
        ),
        (
            {"BM": 256, "BN": 256},
            "BN",
            "a consumer thread holds 128 * 256 / 128 of the tile = 256, but has 232",
            "Set BN: auto; or BM: auto.",
        ),
        (
            {"dtype": "fp8_e4m3", "b_major": "n"},
            "b_major",
            "wgmma takes fp8 operands only with k contiguous",
            "Set b_major: k.",
        ),
        (
            {"ping_pong": True, "BM": 256},
            "BM",
            "with ping_pong each has a tile of its own",
            "Set BM: 128; or ping_pong: false.",
        ),
        (
            {"BM": 192, "num_consumer_warpgroups": 2, "ping_pong": False},
            "BM",
            "192 rows for 2 consumer warpgroups, and each computes 64 or 128 of them: 128 or 256",
            "",
        ),
        (
            {"BN": 176, "b_major": "n"},
            "BN",
            "176 columns, but where B has n contiguous a tile has whole panels of 64 columns",
            "Set BN: 128; or b_major: k.",
        ),
        ({"BN": 48, "b_major": "n"}, "BN", "whole panels of 64", "Set BN: 64; or b_major: k."),
        (
            {"BM": 16},
            "BM",
            "16 rows for 1 consumer warpgroups, and each computes 64 or 128",
            "or swap_operands: true.",
        ),
        (
            {"BM": 16, "BN": 96, "swap_operands": True},
            "BN",
            "96 columns for 1 consumer warpgroups, and with swap_operands each computes 64 or 128",
            "Set BN: auto.",
        ),
        (
            {"swap_operands": True, "BM": 136, "residual": "matrix"},
            "BM",
            "136 rows, but with a matrix C a panel has whole groups of 16 rows",
            "Set BM: 144; or swap_operands: false and BM: auto.",
        ),
        (
            {"swap_operands": True, "ping_pong": True},
            "ping_pong",
            "not supported yet with swap_operands",
            "Set ping_pong: false; or swap_operands: false.",
        ),
        (
            {"swap_operands": True, "out_dtype": "fp32"},
            "out_dtype",
            "pieces of 8 x 8 elements of 16 bits are transposed",
            "Set out_dtype: auto; or swap_operands: false.",
        ),
        (
            {"swap_operands": True, "b_major": "n"},
            "b_major",
            "swap_operands is made for k contiguous",
            "Set b_major: k; or swap_operands: false.",
        ),
        (
            {"split_k": 2, "cta_group": 2},
            "cta_group",
            "cta_group: 2, but the cluster of two CTAs divides k with split_k: 2",
            "Set cta_group: 1; or split_k: 1.",
        ),
        (
            {"split_k": 2, "ping_pong": True},
            "ping_pong",
            "not supported yet where a cluster divides k",
            "Set ping_pong: false; or split_k: 1.",
        ),
        (
            {"split_k": 2, "BM": 128, "BN": 256, "num_stages": 3},
            "num_stages",
            "6 * 8192 (epi) + 2 * 65536 (sums) + ",
            "BN: ",
        ),
        (
            {"output_in_ring": True, "residual": "matrix"},
            "output_in_ring",
            "residual: matrix comes into the output's slots while the ring is full",
            "Set output_in_ring: false.",
        ),
        (
            {"output_in_ring": True, "ping_pong": True},
            "output_in_ring",
            "with ping_pong: true the ring has the other tile's blocks meanwhile",
            "Set output_in_ring: false; or ping_pong: false.",
        ),
        (
            {"output_in_ring": True, "split_k": 2},
            "output_in_ring",
            "it is not supported yet with split_k: 2",
            "Set output_in_ring: false; or split_k: 1.",
        ),
        (
            {"output_in_ring": True, "BM": 256, "BN": 64, "num_stages": 1, "num_epi_stages": 4},
            "output_in_ring",
            "8 * 8192 bytes for panels of the output do not fit the 1 * 40960 of the ring",
            "Set output_in_ring: false; or num_epi_stages: 2.",
        ),
        (
            {"share": "both", "cta_group": 2},
            "share",
            "share: both, but of a pair of CTAs a grid has one row or one column",
            "Set share: auto; or cta_group: 4.",
        ),
        (
            {"share": "both"},
            "share",
            "share: both, but with cta_group: 1 every CTA loads for itself",
            "Set share: auto; or cta_group: 4.",
        ),
        (
            {"share": "a", "cta_group": 8},
            "share",
            "share: a, but with cta_group: 8 a cluster shares both",
            "Set share: auto and cta_group: 4; or share: both.",
        ),
        (
            {"a_major": "m", "cta_group": 8},
            "cta_group",
            "cta_group: 8 with a_major: m is not supported yet",
            "Set share: auto and cta_group: 4; or cta_group: 4.",
        ),
        ({"BK": 256}, "BK", "a stage brings 128 or 256 bytes along k: 64 or 128", "Set BK: 64."),
    ],
)
def test_messages(
    hopper_gemm: ConfigOf, keys: dict[str, object], key: str, words: str, remedy: str
) -> None:
    problem = problems_of(hopper_gemm(**keys))[0]
    assert problem.key == key
    assert words in problem.message
    assert remedy in problem.remedy
    assert problem.remedy
