"""Matrix products of a warp, and what all matrix products share."""
