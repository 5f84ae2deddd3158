"""The plan of latent attention while decoding on Blackwell, over a pair of CTAs.

Keys of 576 columns, of which 512 are the values; tiles of 128 packed rows, 64 of each CTA. A
product of 128 rows over a pair leaves each CTA the output of its rows, 64 x 512, in half of tensor
memory. Of a block of keys each CTA brings in half of the keys, for the scores, and half of the
values' columns of all keys, for the output: memory is read once, and what both need comes from L2.

Line, shares, partial results and their combining are those of ``attention_decode``.
"""
