"""The plan of a matrix product on Blackwell: accumulators in tensor memory, tcgen05."""
