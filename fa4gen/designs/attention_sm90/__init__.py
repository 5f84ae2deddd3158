"""The plan of attention forward on Hopper.

``plan`` decides every key (``tuning`` holds what was measured), ``memory`` and ``model`` derive the
rest, ``rules`` and ``limits`` say what cannot work.

Three consumer warpgroups of 64 rows (or two, where the output takes too many registers) hide each
other's softmax; the rings of key and value blocks are filled by one thread through TMA.
"""
