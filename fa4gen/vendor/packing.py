"""Machine code as digits: an arithmetic code whose chances a model learns from the bytes so far.

The launcher's C unpacks it (templates/vendor/src/image.c.j2 says how); there are only integers, so
that both sides compute the same. Here the bytes are known beforehand: what depends on them alone is
computed for all at once, and what one bit leaves for the next one of the same context, or of the
same weights, in rounds, each of which takes the next bit of every context.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Words = NDArray[np.uint32]
    Chances = NDArray[np.int32]
    Odds = NDArray[np.int16]
    Bits = NDArray[np.bool_]

RADIX = 90
VALUES = (
    "PLACE", "OPCODE", "OPCODE_BEFORE", "BACK_1", "BACK_2", "BACK_3", "BACK_4", "BACK_5", "BACK_6",
    "BACK_16", "BACK_32", "EXPECTED", "LENGTH", "LIKEWISE",
)  # fmt: skip
"""What a context may depend on: the byte's place in an instruction of 16 bytes; the opcode, as far
as it is known, and that of the instruction before; bytes so far back; the byte that came after the
last six bytes when they came before, and the length of that match; the byte at this place of the
last instruction with the opcode."""
CONTEXTS = (
    ("PLACE", "BACK_1"),
    ("PLACE", "OPCODE", "OPCODE_BEFORE", "BACK_4", "BACK_16"),
    ("BACK_1", "BACK_2"),
    ("BACK_2", "BACK_3", "BACK_4"),
    ("BACK_1", "BACK_4", "BACK_5", "BACK_16", "BACK_32"),
    ("PLACE", "OPCODE", "BACK_1"),
    ("PLACE", "OPCODE", "OPCODE_BEFORE", "BACK_3", "BACK_32", "LIKEWISE"),
    ("EXPECTED", "LENGTH"),
    ("LIKEWISE",),
    ("PLACE", "OPCODE"),
    ("EXPECTED",),
    ("OPCODE", "OPCODE_BEFORE", "LIKEWISE"),
    ("PLACE", "OPCODE", "BACK_5", "LIKEWISE"),
    ("BACK_3", "BACK_16"),
)
"""Found by trying additions and changes on machine code of shipped kernels."""
MATCH_BYTES, LONGEST = 6, 32
TABLE_BITS = 18
MOST_COUNTED = 30
LEARNING_RATE = 12
KINDS = 512
"""Of opcodes, each of which has weights."""
FIRST_WEIGHT = 10000
HASH_FACTOR, SLOT_FACTOR = 0x2F0B4C47, 0x85EBCA6B
LOGISTIC = (
    1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348,
    3607, 3785, 3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094,
)  # fmt: skip
"""4096 / (1 + exp(-x)) for x from -8 to 8."""
MODEL = "8"
"""Another one where the same bytes become other digits."""
_RATES = np.array([262144 // (5 * count + 9) for count in range(MOST_COUNTED + 1)], np.int32)
_SETTLED = 128
"""Bits that are alike, after which a chance changes no more."""
_ENOUGH = 1 << 40
_FEW = 64
"""Runs that go on, of which rounds are no faster than one after the other."""


def pack(data: bytes) -> tuple[int, ...]:
    """Return the digits of ``data``, the highest first."""
    if not data:
        return ()
    chances, bits = _chances(np.frombuffer(data, np.uint8))
    return _digits(chances.tolist(), bits.tolist())


def model_constants() -> dict[str, object]:
    """Return what the template of the launcher reads of the model."""
    return {
        "radix": RADIX,
        "contexts": [_mask(context) for context in CONTEXTS],
        "match_bytes": MATCH_BYTES,
        "longest_match": LONGEST,
        "table_bits": TABLE_BITS,
        "most_counted": MOST_COUNTED,
        "learning_rate": LEARNING_RATE,
        "first_weight": FIRST_WEIGHT,
        "opcode_kinds": KINDS,
        "hash_factor": HASH_FACTOR,
        "slot_factor": SLOT_FACTOR,
        "logistic": LOGISTIC,
    }


def _mask(context: tuple[str, ...]) -> str:
    return f"0x{sum(1 << VALUES.index(name) for name in context):04x}"


def _hash(so_far: Words, value: Words) -> Words:
    mixed = (so_far + value + np.uint32(1)) * np.uint32(HASH_FACTOR)
    return mixed ^ mixed >> np.uint32(15)


def _values(data: NDArray[np.uint8]) -> dict[str, Words]:
    """Return what contexts depend on, for each byte."""
    size = len(data)
    padded = np.concatenate([np.zeros(LONGEST, np.uint8), data]).astype(np.uint32)
    at = np.arange(size)
    place = at % 16
    own = at - place + LONGEST
    first = padded[own]
    second = padded[np.minimum(own + 1, size + LONGEST - 1)]
    opcode = first | (second & 15) << 8
    values = {
        "PLACE": place.astype(np.uint32),
        "OPCODE": np.select([place == 0, place == 1], [np.uint32(4096), 8192 + first], opcode),
        "OPCODE_BEFORE": padded[own - 16] | (padded[own - 15] & 15) << 8,
    }
    for back in (1, 2, 3, 4, 5, 6, 16, 32):
        values[f"BACK_{back}"] = padded[at + LONGEST - back]
    values["EXPECTED"], values["LENGTH"] = _matches(data)
    values["LIKEWISE"] = _likewise(data, opcode)
    return values


def _likewise(data: NDArray[np.uint8], opcode: Words) -> Words:
    """Return 256 and the byte at the same place of the last instruction with the opcode; 0 else."""
    result = np.zeros(len(data), np.uint32)
    last: dict[int, int] = {}
    for begin in range(0, len(data) - 2, 16):
        end = min(begin + 16, len(data))
        key = int(opcode[begin])
        if key in last:
            before = last[key]
            result[begin + 2 : end] = (
                data[before + 2 : before + end - begin].astype(np.uint32) + 256
            )
        last[key] = begin
    return result


def _matches(data: NDArray[np.uint8]) -> tuple[Words, Words]:
    """Return 256 and the byte that matches expect, 0 where there is none; and their lengths."""
    size = len(data)
    keys = np.zeros(size + 1, np.uint32)
    for back in range(1, MATCH_BYTES + 1):
        keys[MATCH_BYTES:] = _hash(
            keys[MATCH_BYTES:], data[MATCH_BYTES - back : size + 1 - back].astype(np.uint32)
        )
    hashes, text = (keys >> np.uint32(16)).tolist(), data.tobytes()
    places: dict[int, int] = {}
    expected, lengths = [0] * size, [0] * size
    match = length = 0
    for at in range(size):
        if at >= MATCH_BYTES:
            known = places.get(hashes[at], 0)
            if known and length < 16:
                found, most = 0, min(LONGEST, known)
                while found < most and text[known - 1 - found] == text[at - 1 - found]:
                    found += 1
                if found > length:
                    match, length = known, found
            places[hashes[at]] = at
        if match:
            expected[at] = text[match] + 256
            lengths[at] = min(length, 15)
            length = length + 1 if text[match] == text[at] else 0
            match += 1
    return np.array(expected, np.uint32), np.array(lengths, np.uint32)


def _chances(data: NDArray[np.uint8]) -> tuple[Numbers, Bits]:
    """Return the chance of a one in 4096ths, and the bit, for all bits of ``data`` in turn."""
    size = len(data)
    bits = np.unpackbits(data).view(np.bool_)
    byte = data.astype(np.uint32)
    halves = np.stack([np.ones(size, np.uint32), 16 | byte >> 4], 1)
    nodes = np.stack([1 << n % 4 | byte >> (8 - n) & ((1 << n % 4) - 1) for n in range(8)], 1)
    values = _values(data)
    orders, runs = [], _Runs(nodes.ravel(), bits)
    for number, context in enumerate(CONTEXTS):
        hashes = np.full(size, number + 1, np.uint32)
        for name in VALUES:
            if name in context:
                hashes = _hash(hashes, values[name])
        orders.append(runs.add(_hash(hashes[:, None], halves).ravel() * np.uint32(SLOT_FACTOR)))
    odds = np.empty((len(CONTEXTS), len(bits)), np.int16)
    met, table = runs.chances().reshape(odds.shape), _odds_table()
    for number, order in enumerate(orders):
        odds[number, order] = table.take(met[number] >> 4)
    by_place, by_opcode = _by_place(odds, bits), _by_opcode(odds, bits, values["OPCODE"])
    both = np.trunc((by_place + by_opcode) / 2).astype(np.int64)
    return _chance_table()[both + 2047], bits


class _Runs:
    """Bits in the order of the table's entries; a run of them has one owner, and begins anew.

    ``nodes``: of each bit, those before it in its half byte.
    """

    def __init__(self, nodes: Words, bits: Bits) -> None:
        self._nodes, self._of_all = nodes << np.uint32(8), bits
        self._by_node = np.argsort(nodes.astype(np.uint16), kind="stable")
        self._begins: list[Numbers] = []
        self._lengths: list[Numbers] = []
        self._bits: list[Bits] = []
        self._alike: list[Chances] = []
        """What bits would meet if all of their run were as its first one."""

    def add(self, mixed: Words) -> Numbers:
        """Add a context's bits by hashes of half bytes; return their order here."""
        places = (mixed >> np.uint32(36 - TABLE_BITS)).astype(np.uint16)
        # By place and, there, by node: sorting 16 bits takes no comparisons.
        order = self._by_node[np.argsort(places.take(self._by_node >> 2), kind="stable")]
        owners = (mixed >> np.uint32(32 - TABLE_BITS) & ~np.uint32(15)) << np.uint32(8)
        key = (owners | mixed & np.uint32(255)).take(order >> 2) | self._nodes.take(order)
        begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        lengths, bits = np.diff(begins, append=len(order)), self._of_all.take(order)
        within = np.arange(len(bits)) - np.repeat(begins, lengths)
        np.minimum(within, _SETTLED - 1, out=within)
        within += np.repeat(bits[begins] * _SETTLED, lengths)
        self._alike.append(_alike().ravel().take(within))
        self._lengths.append(lengths)
        self._begins.append(begins + len(self._bits) * len(bits))
        self._bits.append(bits)
        return order

    def chances(self) -> Chances:
        """Return the chances that bits meet, in their order here: those of the run so far."""
        begins, lengths = np.concatenate(self._begins), np.concatenate(self._lengths)
        bits, met = np.concatenate(self._bits), np.concatenate(self._alike)
        # That holds up to the first bit unlike those before it: rounds begin after that one.
        unlike = np.append(np.flatnonzero(bits[1:] != bits[:-1]) + 1, len(bits))
        until = unlike[np.searchsorted(unlike, begins, "right")] + 1
        left = begins + lengths - until
        going = np.flatnonzero(left > 0)
        going = going[np.argsort(-left[going], kind="stable")]
        begins, until, left = begins[going], until[going], left[going]
        chance = met[until - 1]
        _learn(chance, bits[until - 1], _RATES[np.minimum(until - 1 - begins, MOST_COUNTED)])
        count = np.minimum(until - begins, MOST_COUNTED)
        running = len(going) - np.cumsum(np.bincount(left, minlength=1))
        step = 0
        while running[step] > _FEW:
            now, at = chance[: running[step]], until[: running[step]] + step
            met[at] = now
            _learn(now, bits[at], _RATES[np.minimum(count[: len(now)] + step, MOST_COUNTED)])
            step += 1
        for run in range(int(running[step])):
            rest = slice(until[run] + step, until[run] + left[run])
            met[rest] = _met(int(chance[run]), bits[rest].tolist(), int(count[run]) + step)
        return met


@lru_cache(maxsize=1)
def _alike() -> Chances:
    """Return the chances that bits of a run meet which are all 0, or all 1, until they settle."""
    return np.array([_met(1 << 15, [one] * _SETTLED, 0) for one in (False, True)], np.int32)


def _learn(chance: Chances, ones: NDArray[np.bool_], rate: Chances) -> None:
    """Let chances learn from a bit each."""
    wrong = np.where(ones, 65535 - chance, chance) * rate >> 15
    chance += np.where(ones, wrong, -wrong)


def _met(chance: int, ones: list[bool], count: int) -> list[int]:
    """Return the chances that bits of one run meet, of which there were ``count`` before."""
    met, rates = [], _RATES.tolist()
    for one, rate in zip(ones, chain(rates[count:], repeat(rates[-1])), strict=False):
        met.append(chance)
        if one:
            chance += (65535 - chance) * rate >> 15
        else:
            chance -= chance * rate >> 15
    return met


def _by_place(odds: Odds, bits: Bits) -> Floats:
    """Return the log-odds for all bits in turn, by weights of a place and a bit."""
    sets = 128
    weights = np.full((len(CONTEXTS), sets), FIRST_WEIGHT, np.float64)
    result = np.empty(len(bits))
    for begin in range(0, len(bits), sets):
        now, bit = odds[:, begin : begin + sets].astype(np.float64), bits[begin : begin + sets]
        result[begin : begin + sets] = _learnt(weights[:, : len(bit)], now, bit)
    return result


def _by_opcode(odds: Odds, bits: Bits, opcode: Words) -> Floats:
    """Return the same by weights of an opcode, some bits of it, and a bit: in rounds, as _Runs."""
    kind = (opcode % KINDS).astype(np.uint16)
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(begins, append=len(kind))
    longest = np.argsort(-lengths, kind="stable")
    begins, lengths = begins[longest], lengths[longest]
    running = len(begins) - np.cumsum(np.bincount(lengths))
    weights = np.full((len(CONTEXTS), len(begins), 8), FIRST_WEIGHT, np.float64)
    by_byte, bits_of = odds.reshape(len(CONTEXTS), -1, 8), bits.reshape(-1, 8)
    result = np.empty(bits_of.shape)
    for step, count in enumerate(running[:-1].tolist()):
        at = order[begins[:count] + step]
        now = by_byte.take(at, axis=1).astype(np.float64)
        result[at] = _learnt(weights[:, :count], now, bits_of[at])
    return result.ravel()


def _learnt(weights: Floats, odds: Floats, bits: Bits) -> Floats:
    """Return the sums of log-odds by a set of weights for each bit, whose weights learn from it.

    All are integers below 2**53, of which floating point is exact, and faster.
    """
    total: Floats = np.einsum("i...,i...->...", weights, odds)
    total /= 65536
    np.trunc(total, out=total)
    np.minimum(np.maximum(total, -2047, out=total), 2047, out=total)
    error = (bits * 4096 - _chance_table().take((total + 2047).astype(np.intp))) * LEARNING_RATE
    odds *= error / 16384
    weights += np.trunc(odds, out=odds)
    return total


@lru_cache(maxsize=1)
def _chance_table() -> Numbers:
    """Return chances in 4096ths by log-odds, from -2047 to 2047."""
    table = []
    for odds in range(-2047, 2048):
        at, within = divmod(odds + 2048, 128)
        table.append((LOGISTIC[at] * (128 - within) + LOGISTIC[at + 1] * within + 64) // 128)
    return np.array(table)


@lru_cache(maxsize=1)
def _odds_table() -> Odds:
    """Return log-odds by chance in 4096ths: the least that give as much."""
    table: list[int] = []
    for odds, chance in enumerate(_chance_table().tolist(), -2047):
        table += [odds] * (chance + 1 - len(table))
    return np.array(table + [2047] * (4096 - len(table)), np.int16)


def _digits(chances: list[int], bits: list[int]) -> tuple[int, ...]:
    """Return the digits of a number that the bits have, by their chances."""
    parts, low, width, count = [], 0, 1, 0
    for chance, bit in zip(chances, bits, strict=True):
        while width < _ENOUGH:
            width *= RADIX
            low *= RADIX
            count += 1
            if count % 64 == 0:  # additions stay short
                parts.append((low, count))
                low = 0
        ones = (width >> 12) * chance
        if bit:
            width = ones
        else:
            low += ones
            width -= ones
    number = low
    for part, at in parts:
        number += part * RADIX ** (count - at)
    return _shortest(number, width, count)


def _shortest(number: int, width: int, count: int) -> tuple[int, ...]:
    """Return the digits, less zeros at the end, of the roundest number from ``number`` on.

    It is below ``number + width``; they have ``count`` digits.
    """
    unit = 1
    while count and _rounded(number, unit * RADIX) < number + width:
        unit *= RADIX
        count -= 1
    return tuple(_digits_of(_rounded(number, unit) // unit, count))


def _digits_of(number: int, count: int) -> list[int]:
    if count > 16:  # divisions of short numbers are fast
        high, low = divmod(number, RADIX ** (count // 2))
        return _digits_of(high, count - count // 2) + _digits_of(low, count // 2)
    return [number // RADIX**at % RADIX for at in reversed(range(count))]


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
