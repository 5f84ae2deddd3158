"""The union of all plans."""

from __future__ import annotations

from fa4gen.designs.shared.attention_model import AnyAttentionPlan
from fa4gen.designs.shared.gemm_model import AnyGemmPlan

Plan = AnyAttentionPlan | AnyGemmPlan
"""Any plan. Further families join this union."""
