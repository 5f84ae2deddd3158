"""Merging partial results of attention by their log-sum-exps: plain loads, sums and stores."""
