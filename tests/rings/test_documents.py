"""Every published struct stands in a file of its name, with the members of its document."""

from __future__ import annotations

import re
from typing import Final

import pytest

from fa4gen.resources import data_root

RINGS: Final = data_root("templates") / "rings"
MEMBERS: Final = {
    "depth512_mbars": (
        "Depth512MBars",
        "num_kv_stages mbar_base C_consumer_offset C_producer_offset KV_barriers KV_offset "
        "num_high_count_barriers O_mma_hi_offset O_mma_lo_offset PO_hi_offset PO_lo_offset "
        "S_even_consumer_offset S_even_producer_offset S_odd_consumer_offset "
        "S_odd_producer_offset size SPipelineConsumer SPipelineProducer init producer_s_even "
        "producer_s_odd consumer_s_even consumer_s_odd producer_c consumer_c producer_o_lo "
        "producer_o_hi consumer_o_lo consumer_o_hi po_lo_mbar po_hi_mbar get_kv_mbars num_mbars",
    ),
    "tma_consumer_pipeline": (
        "TMAConsumerPipeline",
        "pipeline smem_desc BK BMN full_kv_bytes is_k_major num_qk_stages_effective "
        "staged_k_bytes get wait release get_k wait_k release_k get_v wait_v release_v",
    ),
    "epi_load_pipeline": (
        "EpiLoadPipeline",
        "num_stages pipeline init_barriers produce acquire_producer wait_consumer producer_mbar "
        "producer_step consume consume_explicit acquire_consumer wait_producer consumer_stage "
        "consumer_step",
    ),
    "output_ring_buffer": (
        "OutputRingBuffer",
        "num_stages stage_stride_cols cta_group pipeline tmem_base_addr mma_complete_mask "
        "Pipeline Stage init_barriers acquire_for_mma release_from_mma acquire_for_epilogue "
        "release_from_epilogue producer consumer get_pipeline",
    ),
    "role_pipeline": ("RolePipeline", "acquire commit wait release"),
}
"""By file: the struct, and parameters, fields, constants and methods of its document.

RolePipeline has none; the methods are those that the document of Depth512MBars calls.
"""


def declared(source: str, struct: str) -> set[str]:
    """Names that a struct declares, its template parameters among them."""
    start = re.search(rf"^template <([^;{{]*)>\nstruct {struct} \{{\n", source, re.MULTILINE)
    assert start, struct
    body = source[start.end() : source.index("\n};", start.end())]
    body = re.sub(r"\{#.*?#\}|\{%.*?%\}|//[^\n]*", "", body, flags=re.DOTALL)
    body = re.sub(r"= \{[^{}]*\}", "", body)
    while "{" in body:
        body = re.sub(r"\{[^{}]*\}", ";", body)
    names = set(re.findall(r"(\w+)(?: = [^,>]*)?(?:,|$)", start[1]))
    for declaration in body.split(";"):
        text = " ".join(declaration.split())
        if "(" in text:
            names |= set(re.findall(r"(\w+)\(", text)[:1])
        elif alias := re.search(r"using (\w+) =", text):
            names.add(alias[1])
        else:
            names |= set(re.findall(r"(\w+)(?: = [^,]*)?(?:,|$)", text))
    return names


@pytest.mark.parametrize("file", MEMBERS)
def test_each_struct_has_the_members_of_its_document(file: str) -> None:
    struct, members = MEMBERS[file]
    source = (RINGS / f"{file}.cuh.j2").read_text(encoding="utf-8")
    assert set(members.split()) - declared(source, struct) == set()


def test_a_member_that_is_missing_is_found() -> None:
    source = """\
template <int32 num_stages, bool is_k = true>
struct Ring {
  uint32 mbar;  // size
  static constexpr int32 first = 0, second = 1;
  using Stage = int32;
  __device__ __forceinline__ void wait(uint32 part) const { release(part); }
};
"""
    names = {"num_stages", "is_k", "mbar", "first", "second", "Stage", "wait"}
    assert names <= declared(source, "Ring")
    assert not {"size", "get", "third"} & declared(source, "Ring")
