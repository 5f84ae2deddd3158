"""The union of all plans."""

from __future__ import annotations

from fa4gen.designs.shared.attention_model import AnyAttentionPlan, BlackwellAttentionPlan
from fa4gen.designs.shared.gemm_model import AnyGemmPlan, BlackwellGemmPlan

BlackwellPlan = BlackwellAttentionPlan | BlackwellGemmPlan
"""Plans with tensor memory."""
Plan = AnyAttentionPlan | AnyGemmPlan
"""Any plan. Further families join this union."""
