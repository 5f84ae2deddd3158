"""On a GPU: kernels pass their cases, and one that hangs is detected."""

from __future__ import annotations

import pytest

from fa4gen.verify.backend import StoppedError
from fa4gen.verify.backends import pick_backend
from fa4gen.verify.cases import Case
from fa4gen.verify.gpu import GpuBackend
from fa4gen.verify.inputs import make_inputs, make_rng
from fa4gen.verify.memory import place
from fa4gen.verify.run import VerifyOptions, verify_built

pytestmark = pytest.mark.gpu

CONFIGS = ["d128_causal_bf16", "d64_window_fp16"]


@pytest.fixture(scope="module")
def built():
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    kernel = build_kernel(str(find_configs(["d128_causal_bf16"])[0]))
    assert kernel.compiled is not None, kernel.problems
    return kernel


@pytest.mark.parametrize("name", CONFIGS)
def test_a_shipped_kernel_passes(gpu, name) -> None:
    from fa4gen.config.find import find_configs
    from fa4gen.verify.build import build_kernel

    (path,) = find_configs([name])
    verdict = verify_built(build_kernel(str(path)), VerifyOptions(seed=11), pick_backend("sm_90a"))
    assert [case for case in verdict.cases if not case.passed] == []
    assert verdict.proof == f"ran on {gpu.name}"
    assert verdict.num_cases > 100


def test_large_cases_have_their_reference_on_the_gpu(gpu, built) -> None:
    options = VerifyOptions(seed=12, patterns=("large/4k", "large/odd_16k"), large=True)
    verdict = verify_built(built, options, GpuBackend("sm_90a"))
    assert verdict.num_passed == 2, verdict.cases


def test_a_kernel_that_takes_too_long_is_given_up(gpu, built) -> None:
    case = Case("c", 1, 16, 16, 16384, 16384)
    inputs = make_inputs(case, 128, "bf16", make_rng(1, "c"))
    memory = place(case, inputs, "bf16", lse=True)
    with pytest.raises(StoppedError, match="did not end within 0 s"):
        GpuBackend("sm_90a", time_limit_s=0).load(built.plan, built.compiled).run(memory)
