"""The plan of decode attention: few query rows, many keys, the speed of memory.

The query rows of all heads of a key head are the rows of a tile, so that keys are read once. The
blocks of keys of all tiles form one line, of which each CTA takes an even share; what several CTAs
computed of a tile is combined in the order of the keys by the last of them.

Products are by mma.sync, which Hopper and Blackwell have alike: the same kernel serves both. With
up to 16 rows a tile memory limits it, so that wgmma or tensor memory would gain nothing. Tiles of
64 rows, on Hopper alone, are by wgmma: with narrow ones the keys would be read several times.
"""
