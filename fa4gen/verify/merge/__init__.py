"""Merging kernels in verify: cases with their numbers, the float64 reference, intervals."""
