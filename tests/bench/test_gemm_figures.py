"""The table of matrix products follows from what bench writes."""

from __future__ import annotations

import bench_parts
import measured

from fa4gen.bench.report import results_data
from fa4gen.bench.run import BenchOptions
from tests.bench.test_gemm_report import make_result, make_size


def test_figures_come_from_the_results_of_bench(tmp_path) -> None:
    path = tmp_path / bench_parts.GEMM
    path.parent.mkdir(parents=True)
    big = "8192x28672x8192"
    results = [
        make_result("plain", make_size("4k", 0.2, cublas=0.19), make_size(big, 5.0, cublas=5.5)),
        make_result(
            "with_c",
            make_size("4k", 0.206, ("plain", 0.2), **{"cublas": 0.22, "cublas in place": 0.21}),
            residual="matrix",
        ),
        make_result("act", make_size("4k", 0.2, **{"cublas + relu": 0.3}), activation="relu(x)"),
        make_result("failed"),
    ]
    gpu = {"name": "NVIDIA H200"}
    options = BenchOptions((), rounds=5, family="gemm")
    document = results_data(
        results, options, date="2026-11-21T08:00:00+00:00", gpu=gpu, versions={"fa4gen": "0.1.0"}
    )
    path.write_text(measured.text_of(measured.lines_of(document, chip="", date="", commit="")))
    section = bench_parts.gemm(tmp_path)
    assert "NVIDIA H200, 2026-11-21." in section
    assert "`torch.addmm(c, a, b, beta=0.5, out=out)`" in section
    assert "of each of 5 rounds" in section
    assert (
        "| config | 4096³ | 8192 x 28672 x 8192 | mean to cuBLAS | mean to cuBLAS in place |"
        in (section)
    )
    assert "| `plain` | 687 (0.95) | 770 (1.10) | 1.022 | - |" in section
    assert "| `with_c` | 667 (1.07) | - | 1.068 | 1.019 |" in section
    assert "| `act` | 687 (1.50) | - | 1.500 | - |" in section
    assert "| `with_c` | `plain` | +3.0 % |" in section
    assert "failed" not in section
