"""Random numbers that are a function of (seed, position, index): nothing to store, so nothing to lose.

Pause, resume, and recovery from a lost device draw the same numbers again. The sampling kernel computes the
same function.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), Threefry-2x32
with 20 rounds; rotations, the key parity constant and the known answers in tests/unit/test_rng.py are those
of their Random123.
"""

_WORD = 0xFFFFFFFF
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_KEY_PARITY = 0x1BD11BDA
_N_ROUNDS = 20


def threefry2x32(key0: int, key1: int, counter0: int, counter1: int) -> tuple[int, int]:
    """Return two random 32-bit words for a key and a counter of two 32-bit words each."""
    keys = (key0, key1, key0 ^ key1 ^ _KEY_PARITY)
    x0 = (counter0 + key0) & _WORD
    x1 = (counter1 + key1) & _WORD
    for n_round in range(_N_ROUNDS):
        rotation = _ROTATIONS[n_round % 8]
        x0 = (x0 + x1) & _WORD
        x1 = ((x1 << rotation | x1 >> (32 - rotation)) & _WORD) ^ x0
        if n_round % 4 == 3:
            injection = n_round // 4 + 1
            x0 = (x0 + keys[injection % 3]) & _WORD
            x1 = (x1 + keys[(injection + 1) % 3] + injection) & _WORD
    return x0, x1


def uniform(seed: int, position: int, index: int) -> float:
    """Return a number in (0, 1) that f32 holds exactly: an odd multiple of 2^-24.

    23 random bits and a half make 24 significant bits. One random bit more would need 25: f32 would round the
    largest value to 1, whose Gumbel noise is infinite.

    Args:
        seed: 0 <= seed < 2^64.
        position: of the token being drawn, 0 <= position < 2^32.
        index: of the candidate, 0 <= index < 2^32.
    """
    word, _ = threefry2x32(seed & _WORD, seed >> 32, position, index)
    return ((word >> 9) + 0.5) * 2.0**-23
