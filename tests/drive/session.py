"""Serve, open the page, ask, and give one answer after the other."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

from tests.drive.arguments import Job
from tests.runner import chromium, parts
from tests.support.answers import Answer
from tests.support.browser import launch
from tests.support.flags import SWIFTSHADER
from tests.support.page import ClutchPage
from tests.support.site import serve

_OWN_GPU = "own"
Failure = dict[str, Any]


def answers(job: Job) -> Iterator[Answer]:
    """Yield the answers in order; the first with errors is the last."""
    executable = chromium.ensure(job.chromium)
    parts.ensure()
    models = [job.model] if job.model else []
    adapter = _OWN_GPU if job.wants_real_gpu else SWIFTSHADER
    with (
        serve(models) as url,
        sync_playwright() as playwright,
        launch(playwright, executable, adapter=adapter, extra_flags=job.chromium_flags) as browser,
        ClutchPage(browser, url) as page,
    ):
        try:
            yield from _conversation(job, page)
        finally:
            if job.screenshot:
                page.page.screenshot(path=job.screenshot)


def _conversation(job: Job, page: ClutchPage) -> Iterator[Answer]:
    model = f"models/{job.model.name}" if job.model else None
    failure = _tried(page, lambda: page.open(model, timeout_ms=job.timeout_ms, **job.settings))
    if failure or page.state != "ready":
        yield _complete(page, failure)
        return
    for number in range(job.n_answers):
        typed = None if number == 0 and "messages" in job.settings else job.prompt
        asks = [partial(_ask, job, page, typed), *([partial(_continue, job, page)] if job.continues_after else [])]
        for ask in asks:
            answer = _complete(page, _tried(page, ask))
            yield answer
            if answer.errors:
                return
        if job.resets_after:
            page.reset()


def _ask(job: Job, page: ClutchPage, typed: str | None) -> None:
    page.generate(typed, stop_after=job.stop_after, timeout_ms=job.timeout_ms)


def _continue(job: Job, page: ClutchPage) -> None:
    page.continue_(timeout_ms=job.timeout_ms)


def _tried(page: ClutchPage, action: Callable[[], object]) -> Failure | None:
    try:
        action()
    except PlaywrightError as error:
        status = page.page.evaluate("document.getElementById('status')?.textContent ?? null")
        state = page.page.evaluate("document.body?.dataset.state ?? null")
        code = "timeout" if "Timeout" in type(error).__name__ else "browser"
        return {
            "code": code,
            "message": error.message,
            "hint": "",
            "data": {"state": state, "status": status},
        }
    return None


def _complete(page: ClutchPage, failure: Failure | None) -> Answer:
    """Add to the last answer what went wrong around it."""
    answer = page.answer()
    errors = [*answer.errors, *([failure] if failure else [])]
    shown = page.error()
    if shown and shown["code"] not in {error["code"] for error in errors}:
        errors.append({**shown, "data": {}})
    faults = page.watch.take()
    errors += [{"code": "page", "message": fault, "hint": "", "data": {}} for fault in faults]
    return replace(answer, errors=errors)
