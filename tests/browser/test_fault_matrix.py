"""The fault matrix in the browser: each fault in each phase, in a real worker, and then the golden answer.

Most cases share a worker: the engine must survive them anyway. The table is `tests/support/fault_matrix.py`.
"""

import pytest

from tests.support.fault_case import FaultCase
from tests.support.fault_cells import EMPTY, LENGTH, NO_ENGINE, READY
from tests.support.fault_matrix import CASES, name_of
from tests.support.watch import Watch
from tests.support.worker_bench import WorkerBench

# What a bug of ours, or of the test's making, leaves in the console.
_TRACES = "Traceback|JsException"

IN_THE_WORKER = [case for case in CASES if case[1] != "dies"]


@pytest.fixture(scope="module")
def bench(chromium, site, watches):
    context = chromium.new_context()
    watches.append(Watch(context, site))
    yield WorkerBench(context.new_page(), site)
    context.close()


@pytest.fixture(scope="module")
def undisturbed(bench):
    """Return the golden ids, and how many buffers a loaded model has."""
    bench.start()
    bench.load()
    return bench.answer(), bench.report()["buffers"]


@pytest.fixture
def ready(bench, undisturbed):
    """Begin with a loaded model and nothing said; a worker that failed a test is replaced."""
    if not bench.is_started:
        bench.start()
        bench.load()
    bench.clear()
    bench.reset()
    bench.is_started = False
    yield
    bench.is_started = not bench.has_failed


@pytest.mark.parametrize(
    ("phase", "fault", "cell"), IN_THE_WORKER, ids=[name_of(phase, fault) for phase, fault, _ in IN_THE_WORKER]
)
@pytest.mark.usefixtures("ready")
def test_the_engine_survives(bench, undisturbed, allowed_faults, phase, fault, cell):
    golden, n_buffers = undisturbed
    bench.has_failed = True
    if cell.ending == "E900":
        allowed_faults.append(_TRACES)
    case = FaultCase(bench, phase, fault, cell)
    case.wait()
    assert case.endings == ([cell.ending] if cell.ending else [])
    report = bench.report()
    assert report["unfired"] == 0
    live = {READY: (n_buffers, 1), EMPTY: (0, 0), NO_ENGINE: (0, 0)}[cell.state]
    assert (report["buffers"], report["devices"]) == live
    finished = [e for e in bench.events(case.since) if e["kind"] == "finished"]
    for event in finished:
        ids = event["output_ids"]
        assert ids == (golden if cell.ending == LENGTH else golden[: len(ids)])
    if cell.state == NO_ENGINE:
        bench.start()
    if cell.state != READY:
        bench.load()
    bench.reset()
    assert bench.answer() == golden
    if cell.state != NO_ENGINE:
        # Nothing came after the end.
        assert case.endings == ([cell.ending] if cell.ending else [])
    bench.has_failed = False
