"""Coverage: the parts of a kernel that a launch exercised, as counts and in words."""
