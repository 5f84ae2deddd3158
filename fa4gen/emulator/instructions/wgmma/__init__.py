"""Matrix products of a warpgroup (Hopper)."""
