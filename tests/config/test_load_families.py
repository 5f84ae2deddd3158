"""Messages about keys and values that belong to another architecture or kernel family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.config.load import config_from_data
from fa4gen.designs.registry import MODELS
from fa4gen.errors import ConfigError
from fa4gen.yaml_words import listing

if TYPE_CHECKING:
    from tests.config.conftest import Refuse

HEAD = "kernel: attention\narch: sm_90a\ndtype: bf16\n"
VALID = HEAD + "depth: 128\n"
BLACKWELL = VALID.replace("sm_90a", "sm_100a")
GEMM = HEAD.replace("attention", "gemm")
BLACKWELL_GEMM = GEMM.replace("sm_90a", "sm_100a")
FIELDS = list(
    dict.fromkeys(key for model in (row.load() for row in MODELS) for key in model.model_fields)
)


@pytest.mark.parametrize(
    ("arch", "remedy"),
    [
        ("sm_90", "The nearest is sm_90a."),
        ("sm90a", "The nearest is sm_90a."),
        ("SM_100", "The nearest is sm_100a."),
        ("sm_103", "The nearest is sm_103a."),
        ("hopper", "The nearest is sm_90a."),
        ("[sm_90a]", ""),
    ],
)
def test_a_wrong_architecture(refuse: Refuse, arch: str, remedy: str) -> None:
    [problem] = refuse(VALID.replace("sm_90a", arch))

    assert (problem.line, problem.column) == (2, 7)
    assert problem.message == (
        f"arch: {arch} is not possible; it must be sm_90a, sm_100a, sm_103a or sm_100f"
    )
    assert problem.remedy == remedy


def test_a_missing_architecture(refuse: Refuse) -> None:
    [problem] = refuse("kernel: attention\ndtype: fp8_e4m3\ndepth: 128\nkv_ring: fused\n")

    assert (problem.line, problem.message) == (1, "the key arch is missing")
    assert problem.remedy == "Add arch: it can be sm_90a, sm_100a, sm_103a or sm_100f."


def test_a_misspelt_architecture_key(refuse: Refuse) -> None:
    [problem] = refuse(VALID.replace("arch:", "acrh:"))

    assert (problem.message, problem.remedy) == ("unknown key acrh", "Did you mean arch?")


@pytest.mark.parametrize(
    ("head", "line", "message", "remedy"),
    [
        (VALID, "num_pv_stages: 2", "unknown key num_pv_stages for arch sm_90a",
         "It is a key of sm_100a, sm_103a and sm_100f: remove it, or change arch."),
        (BLACKWELL, "ping_pong: true", "unknown key ping_pong for arch sm_100a",
         "It is a key of sm_90a: remove it, or change arch."),
        (BLACKWELL, "Ping_pong: true", "unknown key Ping_pong", "Known keys: "),
        (VALID, "BM: 256", "BM: 256 is not possible; it must be 64, 128, 192 or auto",
         "The nearest is 192. 256 is possible with arch sm_100a, sm_103a or sm_100f."),
        (BLACKWELL, "BM: 192", "BM: 192 is not possible; it must be 128, 256 or auto",
         "The nearest are 128 and 256. 192 is possible with arch sm_90a."),
        (BLACKWELL, "epilogue: tma_store", "unknown key epilogue for arch sm_100a",
         "It is a key of sm_90a: remove it, or change arch."),
        (VALID, "num_kv_stages: 17", "it must be a whole number from 1 to 16",
         "The nearest is 16. 17 is possible with arch sm_100a, sm_103a or sm_100f."),
    ],
)  # fmt: skip
def test_what_only_another_architecture_has(
    refuse: Refuse, head: str, line: str, message: str, remedy: str
) -> None:
    [problem] = refuse(f"{head}{line}\n")

    assert problem.line == 5
    assert message in problem.message
    assert problem.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("arch", "dtype", "remedy"),
    [
        ("sm_100a", "fp8", "The nearest is fp8_e4m3."),
        ("sm_90a", "fp8", "The nearest is fp8_e4m3."),
        ("sm_90a", "float16", "The nearest is fp16."),
    ],
)  # fmt: skip
def test_an_element_type(refuse: Refuse, arch: str, dtype: str, remedy: str) -> None:
    [problem] = refuse(f"kernel: attention\narch: {arch}\ndtype: {dtype}\ndepth: 64\n")

    assert (problem.line, problem.column, problem.remedy) == (3, 8, remedy)


def test_registers_of_the_roles_of_another_architecture(refuse: Refuse) -> None:
    problems = refuse(BLACKWELL + "registers: {producer: 24, consumer: 240}\n")

    assert [(p.line, p.column, p.message) for p in problems] == [
        (5, 1, "the key softmax is missing in registers"),
        (5, 1, "the key correction is missing in registers"),
        (5, 1, "the key other is missing in registers"),
        (5, 13, "unknown key producer in registers for arch sm_100a"),
        (5, 27, "unknown key consumer in registers for arch sm_100a"),
    ]


def test_a_key_of_another_architecture_is_no_misspelling(refuse: Refuse) -> None:
    problems = refuse(HEAD + "kv_ring: fused\n")

    assert [p.message for p in problems] == [
        "the key depth is missing",
        "unknown key kv_ring for arch sm_90a",
    ]


def test_a_wrong_kernel_family_hides_no_key_of_another_architecture(refuse: Refuse) -> None:
    problems = refuse(BLACKWELL.replace("attention", "atention") + "overlap: true\n")

    assert [(p.message, p.remedy) for p in problems] == [
        ("kernel: atention is not possible; it must be attention, gemm or merge",
         "The nearest is attention."),
        ("unknown key overlap for arch sm_100a",
         "It is a key of sm_90a: remove it, or change arch."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "message", "remedy"),
    [
        (
            "kernel: matmul",
            "kernel: matmul is not possible; it must be attention, gemm or merge",
            "",
        ),
        ("kernel: GEMM", "kernel: GEMM is not possible", "The nearest is gemm."),
        ("kernel: [gemm]", "kernel: [gemm] is not possible", ""),
        ("kernal: gemm", "unknown key kernal", "Did you mean kernel?"),
        (
            "lse: true",
            "the key kernel is missing",
            "Add kernel: it can be attention, gemm or merge.",
        ),
    ],
)
def test_a_family_that_is_not_there(refuse: Refuse, kernel: str, message: str, remedy: str) -> None:
    [problem] = refuse(VALID.replace("kernel: attention", kernel))

    assert (problem.line, problem.key) in ((1, "kernel"), (1, "kernal"))
    assert message in problem.message
    assert problem.remedy == remedy


@pytest.mark.parametrize(
    ("config", "line", "column", "message", "remedy"),
    [
        (GEMM, "depth: 64", 1, "unknown key depth for kernel gemm",
         "It is a key of kernel attention and kernel merge: remove it, or change kernel."),
        (GEMM, "kv_ring: fused", 1, "unknown key kv_ring for kernel gemm",
         "It is a key of kernel attention with arch sm_100a, sm_103a and sm_100f: "
         "remove it, or change kernel."),
        (GEMM, "scheduler: static", 1, "unknown key scheduler for arch sm_90a",
         "It is a key of sm_100a, sm_103a and sm_100f: remove it, or change arch."),
        (BLACKWELL_GEMM, "ping_pong: true", 1, "unknown key ping_pong for arch sm_100a",
         "It is a key of sm_90a: remove it, or change arch."),
        (GEMM, "registers: {producer: 24, consumer: 240, other: 24}", 42,
         "unknown key other in registers for kernel gemm",
         "It is a key of kernel attention with arch sm_100a, sm_103a and sm_100f: "
         "remove it, or change kernel."),
        (HEAD + "depth: 64\n", "residual: row", 1, "unknown key residual for kernel attention",
         "It is a key of kernel gemm: remove it, or change kernel."),
        (GEMM, "residul: row", 1, "unknown key residul", "Did you mean residual?"),
        (GEMM, "residual: rows", 11, "residual: rows is not possible", "The nearest is row."),
        (BLACKWELL_GEMM, "BM: 192", 5, "BM: 192 is not possible; it must be 64, 128 or auto",
         "The nearest is 128. 192 is possible with arch sm_90a."),
        (GEMM, "activation: x + rleu(x)", 17, "activation: 'rleu' is not known; did you mean relu?",
         ""),
        (GEMM, 'activation: "max(x,"', 17, "'max(x,' is not an expression at character 4", ""),
        (GEMM, "activation: 3", 13, "activation: 3 is not possible; it must be text", ""),
    ],
)  # fmt: skip
def test_a_mistake_in_either_family(
    refuse: Refuse, config: str, line: str, column: int, message: str, remedy: str
) -> None:
    [problem] = refuse(f"{config}{line}\n")

    assert (problem.line, problem.column) == (config.count("\n") + 1, column)
    assert message in problem.message
    assert problem.remedy == remedy


def test_beside_a_wrong_architecture_keys_of_another_family_are_reported(refuse: Refuse) -> None:
    problems = refuse(GEMM.replace("sm_90a", "sm_90") + "ping_pong: true\nmask: none\n")

    assert [p.message for p in problems] == [
        "arch: sm_90 is not possible; it must be sm_90a, sm_100a, sm_103a or sm_100f",
        "unknown key mask for kernel gemm",
    ]


def test_beside_a_wrong_architecture_only_what_none_takes_is_reported(refuse: Refuse) -> None:
    problems = refuse(
        "kernel: attention\narch: sm_9\ndtype: fp8_e4m3\ndepth: 100\nping_pong: 1\n"
        "num_pv_stages: 2\nBM: 192\nregisters: {softmax: 24}\nkv_rings: fused\n"
    )

    assert [p.key for p in problems] == ["arch", "depth", "ping_pong", "kv_rings"]
    assert problems[2].message.endswith("it must be true, false or auto")
    assert problems[3].remedy == "Did you mean kv_ring?"


SAMPLES = {
    ("attention", "sm_90a"): {
        "dtype": ["bf16", "fp16"], "BM": [64, 192, "auto"], "BN": [16, 176], "lse": [False],
        "mask": ["causal", {"sliding_window": {"left": 1, "right": 2}}], "ping_pong": [True],
        "registers": [{"producer": 24, "consumer": 240}], "epilogue": ["direct"],
    },
    ("attention", "sm_103a"): {
        "dtype": ["bf16", "fp8_e4m3"], "BM": [128, 256], "BN": [32, 256], "value_depth": [64],
        "mask": [{"sliding_window": 5}], "kv_ring": ["fused"], "exp2_fma_share": [0.25],
        "registers": [{"softmax": 192, "correction": 64, "other": 48}],
    },
    ("gemm", "sm_90a"): {
        "dtype": ["bf16", "fp8_e4m3"], "BM": [64, 192, "auto"], "BN": [192], "BK": [128],
        "residual": ["row"], "activation": ["relu(x)"], "ping_pong": [True],
        "registers": [{"producer": 24, "consumer": 240}],
    },
    ("gemm", "sm_100a"): {
        "dtype": ["fp16"], "BM": [64, 128], "a_major": ["m"], "num_accum_stages": [2],
        "activation": ["gelu(x)"], "scheduler": ["dynamic"],
    },
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(SAMPLES)), st.text(max_size=8) | st.none() | st.integers())
def test_a_config_with_only_its_architecture_wrong_has_one_problem(
    data: st.DataObject, home: tuple[str, str], wrong: object
) -> None:
    kernel, arch = home
    optional = {key: st.sampled_from(values) for key, values in SAMPLES[home].items()}
    keys = data.draw(st.fixed_dictionaries({"dtype": optional.pop("dtype")}, optional=optional))
    config = {"kernel": kernel, "arch": arch, **keys}
    config |= {"depth": 64} if kernel == "attention" else {}
    assert config_from_data(config, "x").arch == arch

    with pytest.raises(ConfigError) as caught:
        config_from_data({**config, "arch": wrong}, "x")

    assert [problem.key for problem in caught.value.problems] == ["arch"]


HOMES: dict[tuple[str, str], set[str]] = {}
"""Keys that a family has on an architecture, in whichever of its designs."""
for _row in MODELS:
    for _arch in _row.archs:
        HOMES.setdefault((_row.design.family.name, _arch), set()).update(_row.load().model_fields)


@pytest.mark.parametrize(("kernel", "arch"), HOMES)
def test_every_key_is_known_or_told_whose_it_is(kernel: str, arch: str) -> None:
    data = {"kernel": kernel, "arch": arch, "dtype": "bf16"}
    data |= {"depth": 64} if kernel == "attention" else {}
    for key in FIELDS:
        with pytest.raises(ConfigError) as caught:
            config_from_data({**data, key: []}, "x")

        [problem] = [p for p in caught.value.problems if p.key == key]
        homes = [home for home, keys in HOMES.items() if key in keys]
        near = [a for k, a in homes if k == kernel]
        if (kernel, arch) in homes or key == "kernel":
            assert (
                "is not possible" in problem.message
                or " needs " in problem.message
                or " has no " in problem.message
            )
        elif near:
            assert problem.remedy.startswith(f"It is a key of {listing(near, 'and')}:")
        else:
            kernels = list(dict.fromkeys(k for k, _ in homes))
            assert problem.remedy.startswith("It is a key of ")
            assert all(f"kernel {k}" in problem.remedy for k in kernels)
            if len(kernels) > 1:
                continue
            [there] = kernels
            others = [a for _, a in homes]
            rest = f" with arch {listing(others, 'and')}:" if arch not in others else ":"
            assert problem.remedy.removeprefix(f"It is a key of kernel {there}").startswith(rest)
