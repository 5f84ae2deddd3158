"""From a config to everything that follows from it: the plan."""
