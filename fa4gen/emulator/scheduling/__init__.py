"""Who runs next, and when a launch has ended."""
