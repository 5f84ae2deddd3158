"""Asynchronous copies and what else completes on an mbarrier."""
