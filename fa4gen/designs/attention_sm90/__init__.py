"""The plan of attention forward on Hopper.

``values`` decides every key (``tuning`` holds what was measured), ``rules`` and ``limits`` say what
cannot work, ``memory``, ``barriers`` and ``tables`` derive the rest, ``plan`` puts it together.

Three consumer warpgroups of 64 rows (or two, where the output takes too many registers) hide each
other's softmax; the rings of key and value blocks are filled by one thread through TMA.
"""
