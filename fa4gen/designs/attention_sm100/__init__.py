"""The plan of attention forward on Blackwell, as FlashAttention-4 arranges it."""
