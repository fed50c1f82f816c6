"""The table of cosines and sines that a load writes: every number as double precision has it, rounded once."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from clutch.model.state import write_rope


@pytest.mark.parametrize(("theta", "dim", "context"), [(10_000.0, 64, 100), (1_000_000.0, 128, 7), (10_000.0, 2, 1)])
def test_the_table_is_exact(theta, dim, context):
    written = {}
    device = SimpleNamespace(write=written.__setitem__)
    write_rope(device, SimpleNamespace(rope="rope"), SimpleNamespace(rope_theta=theta, rope_dim=dim), context)
    table = np.frombuffer(written["rope"], np.float32).reshape(context, dim // 2, 2)
    for position in range(context):
        for i in range(dim // 2):
            angle = position * theta ** (-2 * i / dim)
            assert tuple(table[position, i]) == (np.float32(math.cos(angle)), np.float32(math.sin(angle)))
