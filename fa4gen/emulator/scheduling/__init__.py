"""The scheduler: the order in which lanes run, and the end of a launch."""
