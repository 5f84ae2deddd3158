"""The plan of latent attention while decoding: keys of 576 columns, of which 512 are the values.

Tiles of 64 packed rows, by wgmma on Hopper. Keys are read once, from shared memory by both
products: S = Q . K^T of all columns, O = P . V of the first 512. The output has 256 registers for
each thread of a warpgroup, so that two warpgroups have half of its columns each; blocks of keys
are theirs in turn, and whose block it is computes scores and probabilities for both.

Line, shares, partial results and their combining are those of ``attention_decode``.
"""
