"""Folders with small kernels for all tests here."""

from __future__ import annotations

import json
import shutil
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder import session
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.host_build import find_c_compiler
from tests.vendoring.verify.builds import Builds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

ATTENTION = {"kernel": "attention", "arch": "sm_90a", "dtype": "bf16", "depth": 64, "lse": True}
PRODUCT = {"kernel": "gemm", "dtype": "bf16"}
PACKED = {**ATTENTION, "pack_heads": True}
BLOCKS = {**PRODUCT, "arch": "sm_90a", "dtype": "fp8_e4m3", "BM": 64}
GATED = {**PRODUCT, "arch": "sm_90a", "BM": 64, "BN": 64}
SCALED = {**PRODUCT, "arch": "sm_100a", "cta_group": 1}
MERGE = {"kernel": "merge", "depth": 64}
LISTED = {**ATTENTION, "blocks": "listed", "BN": 64, "BM": 128}
FOLDERS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "builds": {
        "softmax": {**ATTENTION, "mask": "causal"},
        "heads": {**ATTENTION, "mask": "causal", "tile_heads": 4},
        "product": {**PRODUCT, "arch": "sm_90a", "BM": 64, "BN": 128, "residual": "matrix"},
        "dynamic": {**PRODUCT, "arch": "sm_100a", "cta_group": 2, "scheduler": "dynamic"},
        "scaled": {**ATTENTION, "arch": "sm_100a", "dtype": "fp8_e4m3"},
    },
    "sequences": {
        "ragged": {
            **ATTENTION, "mask": "causal", "batching": "ragged", "scheduler": "dynamic",
            "dependent_launch": True,
        },
        "paged": {**ATTENTION, "keys": "paged", "page_size": 16, "sinks": True},
    },
    "shares": {
        "decode": {**PACKED, "mask": "causal", "dependent_launch": True},
        "splits": {**PACKED, "key_lengths": True, "split_keys": {"keys": 256}},
    },
    "scales": {
        "scaled_keys": {**PACKED, "kv_dtype": "fp8_e4m3"},
        "scaled_pages": {
            **PACKED, "kv_dtype": "fp8_e4m3", "kv_scale": "page", "keys": "paged", "page_size": 16,
        },
        "prefilled_pages": {
            **ATTENTION, "dtype": "fp8_e4m3", "kv_scale": "page", "keys": "paged", "page_size": 16,
        },
    },
    "products": {
        "by_blocks": {**BLOCKS, "scales": {"a": "1x128", "b": "128x128"}},
        "by_columns": {
            **BLOCKS, "BN": 64, "scales": {"a": "1x128", "b": "1x128", "dtype": "ue8m0"},
        },
    },
    "gates": {
        "halves": {**GATED, "activation": "silu(gate) * up", "residual": "matrix"},
        "in_turn": {
            **GATED,
            "activation": "min(gate, 7) * sigmoid(1.702 * min(gate, 7)) * (max(up, -7) + 1)",
            "gate_layout": "interleaved",
            "residual": "row",
        },
        "gated_atoms": {
            **PRODUCT,
            "arch": "sm_100a",
            "dtype": "fp8_e4m3",
            "scales": "mxfp8",
            "activation": "silu(gate) * up",
        },
        "scaled_gates": {
            **BLOCKS,
            "BN": 64,
            "activation": "silu(gate) * up",
            "scales": {"a": "1x128", "b": "128x128"},
        },
    },
    "blackwell_products": {
        "arranged": {**SCALED, "dtype": "fp8_e4m3", "scales": "mxfp8", "BN": 64},
        "fours": {**SCALED, "dtype": "fp4_e2m1", "scales": "mxfp4", "residual": "matrix"},
        "row_major": {
            **SCALED, "dtype": "fp4_e2m1", "scales": "nvfp4", "scale_order": "row_major",
            "BN": 128,
        },
    },
    "rows": {
        "offset_groups": {**GATED, "groups": "offsets", "residual": "row"},
        "masked_blocks": {
            **BLOCKS, "groups": "masked", "residual": "matrix",
            "scales": {"a": "1x128", "b": "128x128"},
        },
        "gathered_groups": {
            **GATED, "groups": "offsets", "rows": "gathered", "activation": "silu(gate) * up",
        },
        "gathered_blocks": {
            **BLOCKS, "rows": "gathered", "scales": {"a": "1x128", "b": "128x128"},
        },
        "masked_index": {**GATED, "groups": "masked", "rows": "gathered", "residual": "column"},
    },
    "scattered": {
        "scattered_rows": {**GATED, "groups": "offsets", "out_rows": "scattered"},
        "scattered_blocks": {
            **BLOCKS, "groups": "offsets", "out_rows": "scattered", "BM": 32,
            "swap_operands": True, "scales": {"a": "1x128", "b": "128x128"},
        },
    },
    "quantised": {
        "quantised_rows": {
            **GATED, "BN": 128, "output_scales": "1x128", "residual": "row",
            "activation": "max(x, 0)",
        },
        "quantised_groups": {
            **BLOCKS, "BN": 256, "groups": "offsets", "rows": "gathered",
            "activation": "silu(gate) * up", "scales": {"a": "1x128", "b": "128x128"},
            "output_scales": "1x128", "output_scale_dtype": "ue8m0",
        },
        "quantised_fours": {
            **SCALED, "dtype": "fp4_e2m1", "scales": "nvfp4", "scale_order": "row_major",
            "BN": 128, "output_scales": "nvfp4", "residual": "matrix",
        },
        "gated_fours": {
            **SCALED, "BN": 256, "groups": "offsets", "activation": "silu(gate) * up",
            "output_scales": "nvfp4", "output_scale_order": "arranged",
        },
    },
    "written_atoms": {
        "quantised_atoms": {
            **SCALED, "dtype": "fp8_e4m3", "scales": "mxfp8", "BN": 128, "output_scales": "mxfp8",
            "output_scale_order": "arranged", "residual": "row", "activation": "max(x, 0)",
        },
        "atoms_of_offsets": {
            **SCALED, "dtype": "fp8_e4m3", "scales": "mxfp8", "BN": 128, "output_scales": "mxfp8",
            "output_scale_order": "arranged", "groups": "offsets",
        },
        "atoms_of_fours": {
            **SCALED, "dtype": "fp4_e2m1", "scales": "nvfp4", "BN": 128, "output_scales": "nvfp4",
            "output_scale_order": "arranged", "groups": "offsets",
        },
        "atoms_of_masked": {
            **SCALED, "dtype": "bf16", "BN": 128, "output_scales": "mxfp8",
            "output_scale_order": "arranged", "groups": "masked",
        },
    },
    "sums": {
        "sums_by_group": {
            **GATED, "groups": "k_offsets", "a_major": "m", "b_major": "n", "out_dtype": "fp32",
            "residual": "matrix",
        },
    },
    "largest": {
        "largest_of_all": {**GATED, "output_scales": "amax", "residual": "matrix"},
        "largest_of_groups": {**GATED, "output_scales": "amax", "groups": "masked"},
        "largest_of_blackwell": {**SCALED, "output_scales": "amax", "groups": "offsets"},
    },
    "conditions": {
        "sinking": {**ATTENTION, "mask": "key <= query and (query - key < 60 or key < 4)"},
    },
    "functions": {
        "sloping": {
            **ATTENTION,
            "mask": "causal",
            "score": "score - slope[head] * (query - key)",
            "parameters": {"slope": {"dtype": "fp32", "shape": ["query_heads"]}},
        },
        "documents": {
            **ATTENTION,
            "mask": "document[batch, query] == document[batch, key] or head == 1",
            "score": "where(key % 3 == 0, 0.5 * score, score + tanh(score) * bias[key_head, key])",
            "parameters": {
                "bias": {"dtype": "fp32", "shape": ["key_heads", "keys"]},
                "document": {"dtype": "int32", "shape": ["batch", "keys"]},
            },
        },
    },
    "merging": {
        "merged": {**MERGE, "arch": "sm_90a", "dtype": "bf16"},
        "merged_floats": {**MERGE, "arch": "sm_90a", "dtype": "fp32", "out_dtype": "bf16"},
        "last_step": {**MERGE, "arch": "sm_100a", "dtype": "fp16", "lse": False},
    },
    "lists": {
        "listed_documents": {**LISTED, "mask": "documents"},
        "blocks": {
            **LISTED,
            "dtype": "fp16",
            "mask": "seen[key_head, row // 40, key // 40] != 0 and (head != 1 or key % 3 != 0)",
            "parameters": {"seen": {"dtype": "int32", "shape": ["key_heads", 4, 4]}},
        },
        "blackwell": {
            **ATTENTION, "arch": "sm_100a", "dtype": "fp16", "mask": "documents",
            "blocks": "listed",
        },
    },
}  # fmt: skip
"""Folders with small kernels of one kind each; the first of both families and architectures."""


@pytest.fixture(scope="session", autouse=True)
def shared_programs() -> Iterator[None]:
    """Read and translate PTX once for all recorders: each test has one of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Program", lru_cache(maxsize=16)(session.Program))
        yield


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Builds]:
    """The folders by their names; nothing in them is to be changed."""

    @cache
    def made(name: str) -> Builds:
        try:
            find_c_compiler()
        except MissingCapabilityError as error:
            pytest.skip(str(error))
        configs = tmp_path_factory.mktemp("configs")
        paths = []
        for kernel, config in FOLDERS[name].items():
            paths.append(configs / f"{kernel}.yaml")
            paths[-1].write_text(json.dumps(config))
        folder = tmp_path_factory.mktemp("vendored") / "acme"
        return Builds.of(paths, folder, tmp_path_factory.mktemp("objects"))

    return made


@pytest.fixture(scope="session")
def builds(build: Callable[[str], Builds]) -> Builds:
    """The first folder, its objects and kernels."""
    return build("builds")


@pytest.fixture
def folder(builds: Builds, tmp_path: Path) -> Path:
    """A copy of the folder, to be edited."""
    return shutil.copytree(builds.folder, tmp_path / "acme")
