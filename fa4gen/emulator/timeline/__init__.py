"""When things would happen on a GPU, by a small cost model."""
