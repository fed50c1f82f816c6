"""RMSNorm."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from tests.support.kernel_reference import one

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(("hidden", "n_tokens", "scale"), [(32, 1, 1.0), (576, 5, 1.0), (288, 3, 1e-4), (64, 2, 1e4)])
def test_rms_norm(bench, hidden, n_tokens, scale):
    x = (scale * RNG.normal(size=(8, hidden))).astype(np.float32)
    gain = RNG.normal(size=hidden).astype(np.float32)
    norm = kernel("rms_norm", HIDDEN=hidden, EPS=1e-5)
    buffers = [x, gain, np.zeros_like(x)]
    bench.check(norm, buffers, step=one(0, n_tokens), threads=64, tokens_per_workgroup=1)
