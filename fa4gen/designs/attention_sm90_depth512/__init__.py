"""The plan of attention forward at depth 512 on Hopper, computed by a pair of CTAs.

An output of 64 rows x 512 columns in float32 would fill the registers of a warpgroup: so each CTA
of the pair holds half of the columns, for all 128 query rows. It computes the scores of half of the
keys of every block, and the halves of the probabilities are exchanged.
"""
