"""The weights go to the GPU, not through Python's heap; the plan says what the GPU holds."""

import pytest

from tests.support.worker_patch import COUNTING, counts, patch_worker

MIB = 1 << 20


@pytest.fixture(scope="module")
def loaded(new_page):
    page = new_page()
    patch_worker(page.context, COUNTING)
    assert page.open() == "ready", page.error()
    (_, loaded), *_ = page.events("loaded")
    return counts(page.page), loaded


def test_the_weights_stay_out_of_the_heap(loaded):
    counted, _ = loaded
    heap_bytes_at = counted["heapBytesAt"]
    assert heap_bytes_at["reading_header"] > MIB
    assert heap_bytes_at["loaded"] - heap_bytes_at["reading_header"] < 32 * MIB


def test_the_gpu_holds_what_the_plan_says(loaded):
    counted, event = loaded
    assert counted["liveBytesAt"]["loaded"] == pytest.approx(event["memory"]["total"], rel=0.02)
    assert event["ledger"]["bytes"] == pytest.approx(event["memory"]["total"], rel=0.02)
