"""What the stand-in says about the device: attributes that an H100 gave, changed for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# CUdevice_attribute -> value; driver 580 on an H100
_H100: Final[dict[int, int]] = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2147483647, 6: 65535, 7: 65535, 8: 49152, 9: 65536,
    10: 32, 11: 2147483647, 12: 65536, 13: 1980000, 14: 512, 15: 1, 16: 132, 17: 0, 18: 0, 19: 1,
    20: 0, 21: 131072, 22: 131072, 23: 65536, 24: 16384, 25: 16384, 26: 16384, 27: 32768,
    28: 32768, 29: 2048, 30: 512, 31: 1, 32: 1, 33: 0, 34: 0, 35: 0, 36: 2619000, 37: 5120,
    38: 52428800, 39: 2048, 40: 3, 41: 1, 42: 32768, 43: 2048, 44: 1, 45: 32768, 46: 32768,
    47: 8192, 48: 8192, 49: 32768, 50: 0, 51: 32, 52: 32768, 53: 32768, 54: 2046, 55: 32768,
    56: 131072, 57: 65536, 58: 16384, 59: 16384, 60: 16384, 61: 32768, 62: 2048, 63: 32768,
    64: 32768, 65: 2048, 66: 32768, 67: 32768, 68: 2046, 69: 268435456, 70: 131072, 71: 65000,
    72: 2097120, 73: 32768, 74: 32768, 75: 9, 76: 0, 77: 32768, 78: 1, 79: 1, 80: 1, 81: 233472,
    82: 65536, 83: 1, 84: 0, 85: 0, 86: 0, 87: 2, 88: 0, 89: 0, 90: 1, 91: 1, 92: 0, 93: 0, 94: 0,
    95: 1, 96: 1, 97: 232448, 98: 0, 99: 1, 100: 0, 101: 0, 102: 0, 103: 0, 104: 0, 105: 0,
    106: 32, 107: 1, 108: 32768000, 109: 134217728, 110: 0, 111: 1024, 112: 1, 113: 1, 114: 1,
    115: 1, 116: 0, 117: 0, 118: 0, 119: 0, 120: 1, 121: 1, 122: 0, 123: 0, 124: 0, 125: 0,
    126: 4, 127: 1, 128: 0, 129: 0, 130: 0, 131: -1, 132: 0, 133: 0, 134: 0, 135: 0, 136: 0,
    137: 0, 138: 0, 141: 1, 142: 0, 143: 0, 144: 0, 145: 0, 146: 0, 147: 0,
}  # fmt: skip
_CLOCK, _SMS, _L2, _MAJOR, _MINOR = 13, 16, 38, 75, 76
DRIVER_VERSION: Final = 13000


@dataclass(frozen=True, slots=True)
class Device:
    """A device to stand for: ``sm`` such as 90, its name, its attributes by the driver's number."""

    sm: int
    name: str
    attributes: dict[int, int]


def _blackwell(minor: int) -> dict[int, int]:
    return _H100 | {_MAJOR: 10, _MINOR: minor, _SMS: 148, _L2: 132644864, _CLOCK: 1965000}


DEVICES: Final = {
    "sm_90a": Device(90, "NVIDIA H100 (fa4gen emulator)", _H100),
    "sm_100a": Device(100, "NVIDIA B200 (fa4gen emulator)", _blackwell(0)),
    "sm_103a": Device(103, "NVIDIA B300 (fa4gen emulator)", _blackwell(3)),
}
