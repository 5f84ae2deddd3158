"""Matrix products of a warp, with the code that all matrix products share."""
