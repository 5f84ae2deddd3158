"""One folder with small kernels, of both families and two architectures, for all tests here."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.emulator.recorder import session
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.host_build import find_c_compiler
from tests.vendoring.verify.builds import Builds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONFIGS = {
    "softmax": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: causal
lse: true
""",
    "heads": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: causal
tile_heads: 4
""",
    "product": """\
kernel: gemm
arch: sm_90a
dtype: bf16
BM: 64
BN: 128
residual: matrix
""",
    "dynamic": """\
kernel: gemm
arch: sm_100a
dtype: bf16
cta_group: 2
scheduler: dynamic
""",
    "scaled": """\
kernel: attention
arch: sm_100a
dtype: fp8_e4m3
depth: 64
""",
}
SEQUENCES = {
    "ragged": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: causal
lse: true
batching: ragged
scheduler: dynamic
""",
    "paged": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
lse: true
keys: paged
page_size: 16
sinks: true
""",
}
"""Kernels of sequences of different lengths, in a folder of their own."""
DECODE = {
    "decode": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: causal
lse: true
pack_heads: true
""",
    "splits": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
lse: true
key_lengths: true
pack_heads: true
split_keys: {keys: 256}
""",
}
"""Kernels whose CTAs share keys, likewise."""
SCALED = {
    "scaled": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
kv_dtype: fp8_e4m3
lse: true
pack_heads: true
""",
    "scaled_pages": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
kv_dtype: fp8_e4m3
kv_scale: page
keys: paged
page_size: 16
lse: true
pack_heads: true
""",
}
"""Kernels whose keys and values are fp8, likewise."""
CONDITIONS = {
    "sinking": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: "key <= query and (query - key < 60 or key < 4)"
lse: true
"""
}
"""A kernel whose mask is a condition, likewise."""
FUNCTIONS = {
    "sloping": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: causal
score: "score - slope[head] * (query - key)"
parameters: {slope: {dtype: fp32, shape: [query_heads]}}
lse: true
""",
    "documents": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: "document[batch, query] == document[batch, key] or head == 1"
score: "where(key % 3 == 0, 0.5 * score, score + tanh(score) * bias[key_head, key])"
parameters:
  bias: {dtype: fp32, shape: [key_heads, keys]}
  document: {dtype: int32, shape: [batch, keys]}
lse: true
""",
}
"""Kernels whose masks and scores read tensors, likewise."""
LISTS = {
    "documents": """\
kernel: attention
arch: sm_90a
dtype: bf16
depth: 64
mask: documents
blocks: listed
BN: 64
BM: 128
lse: true
""",
    "blocks": """\
kernel: attention
arch: sm_90a
dtype: fp16
depth: 64
mask: "seen[key_head, row // 40, key // 40] != 0 and (head != 1 or key % 3 != 0)"
parameters: {seen: {dtype: int32, shape: [key_heads, 4, 4]}}
blocks: listed
BN: 64
BM: 128
lse: true
""",
    "blackwell": """\
kernel: attention
arch: sm_100a
dtype: fp16
depth: 64
mask: documents
blocks: listed
lse: true
""",
}
"""Kernels that walk lists of blocks, likewise."""


@pytest.fixture(scope="session", autouse=True)
def shared_programs() -> Iterator[None]:
    """Read and translate PTX once for all recorders: each test has one of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Program", lru_cache(maxsize=16)(session.Program))
        yield


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """The folder, its objects and kernels; nothing in the folder is to be changed."""
    return _build(CONFIGS, tmp_path_factory)


@pytest.fixture(scope="session")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with kernels of sequences of different lengths."""
    return _build(SEQUENCES, tmp_path_factory)


@pytest.fixture(scope="session")
def shares(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with kernels whose CTAs share keys."""
    return _build(DECODE, tmp_path_factory)


@pytest.fixture(scope="session")
def scales(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with kernels whose keys and values are fp8."""
    return _build(SCALED, tmp_path_factory)


@pytest.fixture(scope="session")
def conditions(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with a kernel whose mask is a condition."""
    return _build(CONDITIONS, tmp_path_factory)


@pytest.fixture(scope="session")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with kernels whose masks and scores read tensors."""
    return _build(FUNCTIONS, tmp_path_factory)


@pytest.fixture(scope="session")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """As ``builds``, with kernels that walk lists of blocks."""
    return _build(LISTS, tmp_path_factory)


def _build(texts: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Builds:
    try:
        find_c_compiler()
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    configs = tmp_path_factory.mktemp("configs")
    for name, text in texts.items():
        (configs / f"{name}.yaml").write_text(text)
    paths = [configs / f"{name}.yaml" for name in texts]
    folder = tmp_path_factory.mktemp("vendored") / "acme"
    return Builds.of(paths, folder, tmp_path_factory.mktemp("objects"))


@pytest.fixture
def folder(builds: Builds, tmp_path: Path) -> Path:
    """A copy of the folder, to be edited."""
    import shutil

    return shutil.copytree(builds.folder, tmp_path / "acme")
