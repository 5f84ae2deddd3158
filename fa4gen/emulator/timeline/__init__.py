"""The times of events on a GPU, by a small cost model."""
