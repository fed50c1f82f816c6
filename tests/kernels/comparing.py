"""One kernel's output compared with what NumPy expects, also where it must not write."""

import numpy as np

SENTINEL = np.full(1024, 0xC1, np.uint8)


def check(bench, code, buffers, accesses, want, *, step, grid, nmse=1e-10):
    """Compare the last buffer after one dispatch with `want` (f32), all others and what lies behind with before.

    Where `want` is what stood there before, the kernel must not have written.
    """
    padded = [np.concatenate([np.ascontiguousarray(b).view(np.uint8).reshape(-1), SENTINEL]) for b in buffers]
    found = bench.run_code(code, padded, accesses, step=step, grid=grid)
    for before, have in zip(padded[:-1], found[:-1], strict=True):
        assert (have == before).all(), "a binding that is only read has changed"
    assert (found[-1][-1024:] == SENTINEL).all(), "written behind the end"
    have = found[-1][:-1024].view(np.float32)
    before, want = padded[-1][:-1024].view(np.float32), want.reshape(-1)
    untouched = want == before
    assert (have[untouched] == want[untouched]).all(), "wrote where it must not"
    assert not untouched.all(), "nothing was to be written; the test proves nothing"
    have, want = have[~untouched].astype(np.float64), want[~untouched].astype(np.float64)
    assert np.isfinite(have).all()
    error = ((have - want) ** 2).mean() / (want**2).mean()
    assert error <= nmse, f"nmse {error:.3g} > {nmse:.3g}"
