"""The unions of plans."""

from __future__ import annotations

from fa4gen.designs.attention_decode.model import DecodeAttentionPlan
from fa4gen.designs.attention_latent.model import LatentAttentionPlan
from fa4gen.designs.attention_latent_sm100.model import LatentPairPlan
from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
from fa4gen.designs.attention_sm90_depth512.model import HopperPairAttentionPlan
from fa4gen.designs.attention_sm100.model import FA4Config
from fa4gen.designs.attention_sm100_depth512.model import Depth512Config
from fa4gen.designs.gemm_sm90.model import HopperGemmPlan
from fa4gen.designs.gemm_sm100.model import BlackwellGemmPlan
from fa4gen.designs.merge.model import MergePlan

AnyAttentionPlan = (
    HopperAttentionPlan
    | HopperPairAttentionPlan
    | DecodeAttentionPlan
    | LatentAttentionPlan
    | LatentPairPlan
    | FA4Config
    | Depth512Config
)
"""Any plan of attention."""
AnyGemmPlan = HopperGemmPlan | BlackwellGemmPlan
"""Any plan of a matrix product."""
Plan = AnyAttentionPlan | AnyGemmPlan | MergePlan
"""Any plan. Further families join this union."""
