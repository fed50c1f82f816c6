"""The fault matrix as data: what goes wrong in which phase, and how it must end.

Each cell says how its case ends, or why there is no such case. `docs/fault-matrix.md` is written from this file.
"""

from tests.support.fault_cells import (
    ABORT,
    EMPTY,
    FAULTS,
    LENGTH,
    LOADED,
    LOSE,
    NEVER,
    NO_ENGINE,
    NOTHING,
    READY,
    RESET,
    Cell,
    Phase,
    Rule,
    after_deltas,
    at,
    reject,
    throw,
)

NO_DEVICE = "n/a: no device is open"
ALLOCATES_NOTHING = "n/a: allocates nothing"
NO_WAIT = "n/a: waits for nothing"
NO_PHASE = "n/a: no phase"

REPLACED = Cell("E700", READY)
_LOAD = {"stop": Cell(ABORT, EMPTY), "reset": Cell(LOADED, READY), "dies": REPLACED}
_MENDED_LOAD = Cell(LOADED, READY, n_notices=1)
_ANSWER = {"stop": Cell(ABORT, READY), "reset": Cell(ABORT, READY), "dies": REPLACED}
_MENDED_ANSWER = Cell(LENGTH, READY, n_notices=1)
_MENDED = Cell(NOTHING, READY, n_notices=1)

_STAGING_REFUSED = at("createBuffer", "upload staging", then=at("popErrorScope"))


def a_lost_device(rule: Rule) -> Rule:
    """Return `rule`, armed once the device was lost in the middle of an answer."""
    return after_deltas({**at("submit", then=rule), "acts": [LOSE]})


_READBACK = after_deltas(at("mapAsync"))

PHASES = [
    Phase(
        "probe",
        "boot",
        at("requestAdapter"),
        {
            **_LOAD,
            "lost": NO_DEVICE,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E100", NO_ENGINE, ({"do": "null"},), rule=at("requestAdapter", times=5)),
            "never": Cell("E100", NO_ENGINE),
        },
    ),
    Phase(
        "boot Pyodide",
        "boot",
        at("fetch", "engine.zip"),
        {
            **_LOAD,
            "lost": NO_DEVICE,
            "oom": "left out: Pyodide's promise never settles when its WebAssembly gets no memory; a known gap",
            "fails": Cell("E900", NO_ENGINE, reject("TypeError", "Failed to fetch")),
            "never": "n/a: 13 MB over a slow line take their time; the page shows the phase, there is no deadline",
        },
    ),
    Phase(
        "download",
        "load",
        at("fetch", "tiny.gguf", nth=2),
        {
            **_LOAD,
            "lost": NO_DEVICE,
            "oom": Cell("E400", EMPTY, reject("RangeError", "Array buffer allocation failed"), rule=at("arrayBuffer")),
            "fails": Cell("E300", EMPTY, reject("TypeError", "Failed to fetch")),
            "never": Cell("E300", EMPTY),
        },
    ),
    Phase("verify", "load", at("none"), dict.fromkeys(FAULTS, NO_PHASE)),
    Phase(
        "parse and plan",
        "load",
        at("arrayBuffer"),
        {
            **_LOAD,
            "lost": NO_DEVICE,
            "oom": Cell("E400", EMPTY, ({"do": "small"},), rule=at("limits")),
            "fails": Cell("E200", EMPTY, ({"do": "garbage"},)),
            "never": NO_WAIT,
        },
    ),
    Phase(
        "open the device",
        "load",
        at("requestDevice"),
        {
            **_LOAD,
            "lost": _MENDED_LOAD,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E100", EMPTY, reject("OperationError")),
            "never": _MENDED_LOAD,
        },
    ),
    Phase(
        "allocate",
        "load",
        at("createBuffer", nth=3),
        {
            **_LOAD,
            "lost": _MENDED_LOAD,
            "oom": Cell("E400", EMPTY, rule=at("popErrorScope", nth=5)),
            "fails": Cell("E400", EMPTY, ({"do": "invalid"},), rule=at("popErrorScope", nth=5)),
            "never": Cell(LOADED, READY, n_notices=1, rule=at("popErrorScope", nth=5)),
        },
    ),
    Phase(
        "compile",
        "load",
        at("createComputePipelineAsync", nth=3),
        {
            **_LOAD,
            "lost": _MENDED_LOAD,
            "oom": "n/a: WebGPU says it like any failed compile",
            "fails": Cell("E900", EMPTY, ({"do": "uncompilable"},)),
            "never": _MENDED_LOAD,
        },
    ),
    Phase(
        "upload",
        "load",
        at("read"),
        {
            **_LOAD,
            "lost": _MENDED_LOAD,
            "oom": Cell("E400", EMPTY, rule=_STAGING_REFUSED),
            "fails": Cell("E300", EMPTY, reject("TypeError", "network error")),
            "never": Cell("E300", EMPTY),
        },
    ),
    Phase(
        "warm up and self-test",
        "load",
        at("postMessage", "warming_up", then=at("mapAsync")),
        {
            **_LOAD,
            "lost": _MENDED_LOAD,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E100", EMPTY, reject("OperationError")),
            "never": _MENDED_LOAD,
        },
    ),
    Phase(
        "tokenize",
        "generate",
        at("encode"),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": Cell("E900", READY, throw("RangeError")),
            "fails": Cell("E900", READY, throw("Error")),
            "never": NO_WAIT,
        },
    ),
    Phase(
        "prefill, first chunk",
        "generate",
        at("submit"),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("TypeError")),
            "never": Cell(LENGTH, READY, n_notices=1, rule=at("mapAsync")),
        },
    ),
    Phase(
        "prefill, later chunk",
        "generate",
        at("submit", nth=2),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("TypeError")),
            "never": Cell(LENGTH, READY, n_notices=1, rule=at("mapAsync", nth=2)),
        },
    ),
    Phase(
        "decode submit",
        "generate",
        after_deltas(at("submit")),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("TypeError")),
            "never": NO_WAIT,
        },
    ),
    Phase(
        "readback",
        "generate",
        _READBACK,
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E100", READY, reject("OperationError")),
            "never": _MENDED_ANSWER,
        },
    ),
    Phase(
        "stream",
        "generate",
        at("postMessage", '"kind": "delta"', nth=2),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("DataCloneError")),
            "never": NO_WAIT,
        },
    ),
    Phase(
        "finish",
        "generate",
        at("postMessage", '"kind": "finished"'),
        {
            "stop": Cell(LENGTH, READY),
            "reset": Cell(LENGTH, READY),
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("DataCloneError")),
            "never": NO_WAIT,
            "dies": REPLACED,
        },
    ),
    Phase(
        "continue",
        "resume",
        at("submit"),
        {
            **_ANSWER,
            "lost": _MENDED_ANSWER,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("TypeError")),
            "never": Cell(LENGTH, READY, n_notices=1, rule=at("mapAsync")),
        },
    ),
    Phase(
        "fetch a lost device back",
        "generate",
        a_lost_device(at("requestDevice")),
        {
            "stop": Cell(ABORT, EMPTY),
            "reset": Cell(ABORT, READY, n_notices=1),
            "lost": Cell(LENGTH, READY, n_notices=1),
            "oom": Cell("E400", EMPTY, rule=a_lost_device(at("popErrorScope"))),
            "fails": Cell("E100", EMPTY, reject("OperationError")),
            "never": _MENDED_ANSWER,
            "dies": REPLACED,
        },
    ),
    Phase(
        "idle",
        "idle",
        at("now"),
        {
            "stop": Cell(NOTHING, READY),
            "reset": Cell(NOTHING, READY),
            "lost": _MENDED,
            "oom": ALLOCATES_NOTHING,
            "fails": "n/a: calls nothing",
            "never": NO_WAIT,
            "dies": Cell("E700", READY, rule=at("postMessage", "heartbeat")),
        },
    ),
    Phase(
        "reset",
        "reset",
        at("postMessage", '"resetting"'),
        {
            "stop": Cell(NOTHING, READY),
            "reset": Cell(NOTHING, READY),
            "lost": _MENDED,
            "oom": ALLOCATES_NOTHING,
            "fails": Cell("E900", READY, throw("TypeError"), rule=at("submit")),
            "never": Cell(ABORT, EMPTY, (RESET, NEVER), rule=_READBACK, scene="generate"),
            "dies": REPLACED,
        },
    ),
    Phase(
        "unload",
        "unload",
        at("destroyBuffer"),
        {
            "stop": Cell(NOTHING, EMPTY),
            "reset": Cell(NOTHING, EMPTY),
            "lost": Cell(NOTHING, EMPTY),
            "oom": ALLOCATES_NOTHING,
            "fails": "n/a: destroy() cannot fail",
            "never": Cell(ABORT, EMPTY, ({"do": "unload"}, NEVER), rule=_READBACK, scene="generate"),
            "dies": REPLACED,
        },
    ),
]

CASES = [(phase, fault, cell) for phase in PHASES for fault, cell in phase.cells.items() if isinstance(cell, Cell)]


def name_of(phase: Phase, fault: str) -> str:
    """Return the name of a case."""
    return f"{phase.name.replace(',', '').replace(' ', '_')}-{fault}"
