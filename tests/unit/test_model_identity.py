"""The fingerprint of a model file, and what it is blind to."""

import asyncio

import pytest

from clutch.model.identity import model_identity
from tests.support.fake_platform import FakeSource

HEADER_BYTES, SAMPLE_BYTES = 1000, 4096
FILE = bytes(i * 7 % 251 for i in range(HEADER_BYTES + 40 * SAMPLE_BYTES))
STEP = (40 - 1) * SAMPLE_BYTES // 15


def identity(data, header_bytes=HEADER_BYTES):
    return asyncio.run(model_identity(FakeSource(data), header_bytes))


def flipped(offset):
    return FILE[:offset] + bytes([FILE[offset] ^ 1]) + FILE[offset + 1 :]


def test_the_same_file_is_the_same_model():
    found = identity(FILE)
    assert found == identity(bytes(FILE))
    assert len(found) == 64 and set(found) <= set("0123456789abcdef")


@pytest.mark.parametrize("offset", [0, HEADER_BYTES - 1], ids=["first", "last"])
def test_another_header_is_another_model(offset):
    assert identity(flipped(offset)) != identity(FILE)


@pytest.mark.parametrize(
    "offset",
    [HEADER_BYTES, HEADER_BYTES + STEP, HEADER_BYTES + STEP + SAMPLE_BYTES - 1, len(FILE) - 1],
)
def test_another_weight_in_a_sample_is_another_model(offset):
    assert identity(flipped(offset)) != identity(FILE)


def test_a_weight_between_samples_is_not_seen():
    assert identity(flipped(HEADER_BYTES + SAMPLE_BYTES)) == identity(FILE)


def test_a_longer_file_is_another_model():
    assert identity(FILE + b"\0") != identity(FILE)
    assert identity(FILE, HEADER_BYTES + 1) != identity(FILE)


def test_a_small_file_is_read_whole():
    small = FILE[: HEADER_BYTES + 16 * SAMPLE_BYTES]
    for offset in range(0, len(small), 997):
        assert identity(small[:offset] + bytes([small[offset] ^ 1]) + small[offset + 1 :]) != identity(small)


@pytest.mark.parametrize("n_bytes", [0, 1, 5])
def test_a_file_with_hardly_a_weight(n_bytes):
    assert identity(FILE[: HEADER_BYTES + n_bytes]) != identity(FILE)
