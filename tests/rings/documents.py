"""The published structs: which members their documents name."""

from __future__ import annotations

from typing import Final

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
