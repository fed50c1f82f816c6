"""One page with one device for the whole lane; the lane fails when it cannot write a known pattern."""

import base64
from pathlib import Path

import numpy as np
import pytest

from clutch.gpu.kernels import WRITE
from tests.support import kernel_reference
from tests.support.kernel_reference import Step
from tests.support.site import serve

ROOT = Path(__file__).parents[2]
SENTINEL = 0xC1
SENTINEL_BYTES = 1024


class Bench:
    """Runs kernels in a page and compares them with their reference."""

    def __init__(self, page):
        self._page = page

    def run_code(self, code, buffers, accesses, *, step=None, grid=(1,)):
        """Return the bytes of every binding after one dispatch of `code`."""
        sent = {
            "code": code,
            "accesses": list(accesses),
            "buffers": [base64.b64encode(data).decode() for data in buffers],
            "step": base64.b64encode(step.pack()).decode() if step else None,
            "grid": list(grid),
        }
        received = self._page.evaluate("options => kernelBench.run(options)", sent)
        return [np.frombuffer(base64.b64decode(text), np.uint8) for text in received]

    def check(self, kernel, buffers, *, step=None, threads, tokens_per_workgroup=0, nmse=1e-10, exact=(), compare=None):
        """Compare one dispatch with the NumPy reference.

        Args:
            kernel: the specialisation.
            buffers: an array for each binding, in order; written in neither case.
            step: the step uniform.
            threads, tokens_per_workgroup: as in a Dispatch.
            nmse: largest normalised mean square error of an output.
            exact: bindings whose outputs are compared bit for bit.
            compare: by binding, what compares the bytes found and expected of an output that is not f32.
        """
        step, compare = step or Step(), compare or {}
        padded = [np.concatenate([_bytes(b), np.full(SENTINEL_BYTES, SENTINEL, np.uint8)]) for b in buffers]
        expected = [data.copy() for data in padded]
        kernel_reference.compute(kernel, [data[:-SENTINEL_BYTES] for data in expected], step)
        rows = -(-step.n_tokens // (tokens_per_workgroup or step.tokens_per_sequence))
        found = self.run_code(
            kernel.source(ROOT / "wgsl"),
            padded,
            [access for _, access in kernel.spec.bindings],
            step=step if kernel.spec.has_step else None,
            grid=(-(-threads // kernel.workgroup_size), rows),
        )
        for (name, access), before, want, have in zip(kernel.spec.bindings, padded, expected, found, strict=True):
            assert (have[-SENTINEL_BYTES:] == SENTINEL).all(), f"{name}: written behind its end"
            if access != WRITE:
                assert (have == before).all(), f"{name}: a binding that is only read has changed"
            elif name in exact:
                assert (have == want).all(), f"{name}: differs at byte {np.flatnonzero(have != want)[:8]}"
            elif name in compare:
                compare[name](have[:-SENTINEL_BYTES], want[:-SENTINEL_BYTES])
            else:
                found_f32, expected_f32 = (data[:-SENTINEL_BYTES].view(np.float32) for data in (have, want))
                _compare(name, found_f32, expected_f32, before, nmse)


def _bytes(array):
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    assert len(data) % 4 == 0
    return data


def _compare(name, have, want, before, nmse):
    untouched = want == before[:-SENTINEL_BYTES].view(want.dtype)
    assert (have[untouched] == want[untouched]).all(), f"{name}: wrote where it must not"
    assert not untouched.all(), f"{name}: the reference wrote nothing; the test proves nothing"
    have, want = have[~untouched].astype(np.float64), want[~untouched].astype(np.float64)
    assert np.isfinite(have).all(), name
    error = ((have - want) ** 2).mean() / (want**2).mean()
    assert error <= nmse, f"{name}: nmse {error:.3g} > {nmse:.3g}"


@pytest.fixture(scope="session")
def bench(chromium, adapter):
    with serve([]) as url:
        page = chromium.new_page()
        # Any page of a trustworthy origin will do; this one has no script of its own.
        page.goto(f"{url}static/strings/en.json")
        page.evaluate((ROOT / "tests/support/kernel_bench.js").read_text("utf-8"))
        found = page.evaluate("() => kernelBench.open()")
        assert f"{found['vendor']}/{found['architecture']}" == adapter
        yield Bench(page)
        page.close()
