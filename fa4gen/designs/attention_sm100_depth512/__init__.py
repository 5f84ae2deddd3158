"""The plan of attention forward at depth 512 over a pair of CTAs on Blackwell.

The geometry is that of Depth512MBars: a pair takes 128 query rows and blocks of 256 keys, and most
of it is fixed by 512 columns of tensor memory. ``plan`` decides what is left, ``memory`` and
``model`` derive the rest, ``rules`` says what cannot work.
"""
