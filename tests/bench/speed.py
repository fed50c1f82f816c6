"""How fast a model is: clicks the page's own benchmark, and adds what only the machine knows."""

import json
import shutil
import subprocess
from typing import Any

from tests.bench.arguments import SpeedJob
from tests.bench.speed_report import SpeedReport
from tests.bench.stage import model_url, say, stage
from tests.support.page import ClutchPage

# What a card reads from its memory through WebGPU; measured, see docs/performance.md.
_BANDWIDTHS_GB_PER_S = {"H200": 4300}
_ENDED = """() => {
    const panel = document.getElementById("benchmark");
    return ["idle", "running"].includes(panel.dataset.state) ? null : panel.dataset.state;
}"""
_LINE = "document.getElementById('benchmark-status').textContent"
_LOOK_MS = 2000


def measure(job: SpeedJob) -> SpeedReport:
    """Load the page as a visitor does, then once more to measure.

    Raises:
        RuntimeError: the model does not load.
        playwright.sync_api.Error: the page did not do what was waited for.
    """
    driver = _driver()
    with stage(job) as (browser, url), ClutchPage(browser, url) as page:
        loads = [_load(job, page) for _ in range(job.n_loads)]
        _load(job, page, **_settings(job, driver))
        found = _run(job, page)
        report = SpeedReport(job.command, driver, browser.version, loads, found)
        report.faults += page.watch.take()
        if found["end"] != "done":
            report.faults.append(f"the benchmark ended with {found['end']}: {page.error()}")
        return report


def _load(job: SpeedJob, page: ClutchPage, **settings: object) -> dict[str, Any]:
    """Open the page and return when the model was ready, in ms of the page's life, and the engine's stages."""
    state = page.open(model_url(job), timeout_ms=job.timeout_s * 1000, **settings)
    if state != "ready":
        raise RuntimeError(f"The model did not load: {page.error()}")
    at_ms, loaded = page.events("loaded")[-1]
    say(f"loaded in {at_ms:.0f} ms")
    return {"ready_ms": at_ms, "timings": loaded["timings"]}


def _settings(job: SpeedJob, driver: str) -> dict[str, object]:
    named = (rate for name, rate in _BANDWIDTHS_GB_PER_S.items() if name in driver)
    bandwidth = job.bandwidth_gb_per_s or (next(named, None) if job.wants_real_gpu else None)
    settings = {
        "bench_prompt_tokens": ",".join(map(str, job.prompt_tokens)),
        "bench_answer_tokens": job.n_answer_tokens,
        "bench_samples": job.n_samples,
        "bench_chunk_tokens": job.n_chunk_tokens,
        "context_length": job.context_length,
        "bandwidth_gb_per_s": bandwidth,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _run(job: SpeedJob, page: ClutchPage) -> dict[str, Any]:
    page.page.click("#benchmark summary")
    page.page.click("#benchmark-start")
    waited_ms = 0.0
    while page.page.evaluate(_ENDED) is None:
        if waited_ms > job.timeout_s * 1000:
            raise RuntimeError(f"The benchmark has not ended in {job.timeout_s:.0f} s: {page.page.evaluate(_LINE)}")
        say(str(page.page.evaluate(_LINE)))
        page.page.wait_for_timeout(_LOOK_MS)
        waited_ms += _LOOK_MS
    found: dict[str, Any] = json.loads(page.page.evaluate("document.getElementById('benchmark-json').textContent"))
    return found


def _driver() -> str:
    """Return the card and its driver as NVIDIA's tool names them; "" without it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    query = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    return "; ".join(found.stdout.split("\n")).strip("; ") if found.returncode == 0 else ""
