"""What a launch exercised of a kernel: the counts, and their words for a report."""
