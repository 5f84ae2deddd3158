"""Asynchronous copies and other operations that complete on an mbarrier."""
