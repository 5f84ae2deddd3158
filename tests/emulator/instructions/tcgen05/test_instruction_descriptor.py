import pytest

from fa4gen.emulator.instructions.tcgen05.instruction_descriptor import decode
from tests.emulator.instructions.tcgen05.products import idesc


def bits(m, n, *, a=1, b=1, d=1, **extra):
    """An instruction descriptor of bf16 unless said otherwise."""
    return idesc(m, n, a, b, d, **extra)


def test_the_documented_example() -> None:
    kind = decode(0x08200490, "f16", 1, False)
    assert (kind.m, kind.n, kind.k, kind.a, kind.b, kind.d) == (128, 128, 16, "bf16", "bf16", "f32")
    assert not kind.problems
    assert not any((kind.transpose_a, kind.transpose_b, kind.negate_a, kind.negate_b))


def test_flags() -> None:
    kind = decode(bits(128, 64, negate_a=1, tb=1), "f16", 1, False)
    assert kind.negate_a
    assert not kind.negate_b
    assert kind.transpose_b
    assert not kind.transpose_a


@pytest.mark.parametrize(
    ("kind", "group", "ws", "m", "n", "good"),
    [
        ("f16", 1, False, 64, 8, True),
        ("f16", 1, False, 64, 12 * 8, True),
        ("f16", 1, False, 128, 256, True),
        ("f16", 1, False, 256, 128, False),
        ("f16", 1, False, 32, 64, False),
        ("f16", 1, False, 128, 264, False),
        ("f16", 1, False, 128, 0, False),
        ("f16", 2, False, 256, 16, True),
        ("f16", 2, False, 128, 256, True),
        ("f16", 2, False, 256, 24, False),
        ("f16", 2, False, 64, 64, False),
        ("f16", 1, True, 32, 64, True),
        ("f16", 1, True, 64, 256, True),
        ("f16", 1, True, 64, 32, False),
        ("f16", 1, True, 96, 64, False),
    ],
)
def test_shapes(kind, group, ws, m, n, good) -> None:
    assert bool(decode(bits(m, n), kind, group, ws).problems) != good


@pytest.mark.parametrize(
    ("n", "group", "good"),
    [(8, 1, True), (24, 1, True), (40, 1, False), (48, 1, True), (32, 2, True), (48, 2, False)],
)
def test_integers_have_their_own_steps_of_n(n, group, good) -> None:
    value = bits(128, n, a=0, b=1, d=2)
    assert bool(decode(value, "i8", group, False).problems) != good


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (bits(128, 128, bit6=1), "f16"),
        (bits(128, 128, bit23=1), "f16"),
        (bits(128, 128, bit29=1), "f16"),
        (bits(128, 128, saturate=1), "f16"),
        (bits(128, 128, a=2), "f16"),
        (bits(128, 128, d=2), "f16"),
        (bits(128, 128, d=0, a=1, b=1), "f16"),
        (bits(128, 128, a=1, b=1), "tf32"),
        (bits(128, 128, a=2, b=0), "f8f6f4"),
        (bits(128, 128, a=0, b=0, d=1), "i8"),
        (bits(128, 128, a=0, b=0, d=2, negate_a=1), "i8"),
        (bits(128, 24, a=0, b=0, tb=1), "f8f6f4"),
        (0xFFFFFFFF, "f16"),
    ],
)
def test_what_does_not_exist(value, kind) -> None:
    assert decode(value, kind, 1, False).problems


def test_a_disputed_shape_is_remarked_on() -> None:
    kind = decode(bits(128, 24), "f16", 1, False)
    assert not kind.problems
    assert kind.remarks


def test_block_scaled() -> None:
    # mxf4nvf4: A and B e2m1, ue4m3, SFB id 2, SFA id 0, 128 x 64
    value = 1 << 7 | 1 << 10 | 2 << 4 | (64 >> 3) << 17 | (128 >> 7) << 27
    kind = decode(value, "mxf4nvf4", 1, False)
    assert not kind.problems
    assert (kind.m, kind.n, kind.k, kind.scale, kind.scale_a, kind.scale_b) == (
        128, 64, 64, "ue4m3", 0, 2,
    )  # fmt: skip
    assert decode(value, "mxf4", 1, False).problems  # ue8m0 only
    assert decode(value | 1 << 29, "mxf4nvf4", 1, False).problems  # SFA id 1
