"""How fast Stop, Continue and Reset are, through the page.

Python draws the random moments and counts; each sample is timed by `page_bench.js`, which never waits for us.
"""

import random
from collections.abc import Callable
from typing import Any

from tests.bench.arguments import LifecycleJob
from tests.bench.prompts import QUESTION, words, words_for
from tests.bench.report import Phase, Report
from tests.bench.stage import bring_script, model_url, say, stage
from tests.support.page import ClutchPage

_PROBE_WORDS = 16
# In decode the click comes at a random moment of so many steps after the first token.
_DECODE_STEPS = 10
# Room that a long prompt leaves in a small context.
_SPARE_TOKENS = 16
_MOST_MISSES = 20

Found = dict[str, Any]


def measure(job: LifecycleJob) -> Report:
    """Take all samples.

    Raises:
        RuntimeError: the model does not load, or a phase is over too fast to be hit.
        playwright.sync_api.Error: the page did not do what was waited for.
    """
    with stage(job) as (browser, url), ClutchPage(browser, url) as page:
        report = _opened(job, page, browser.version)
        for name in job.phases:
            report.phases.append(_Bench(job, page, name, report.model["context_length"]).run())
        report.take_faults(page.watch.take())
        return report


def _opened(job: LifecycleJob, page: ClutchPage, version: str) -> Report:
    state = page.open(model_url(job), timeout_ms=job.timeout_s * 1000, temperature=0, max_tokens=512)
    if state != "ready":
        raise RuntimeError(f"The model did not load: {page.error()}")
    bring_script(page.page, "page_bench.js")
    page.page.evaluate("ms => window.clutchBench.setTimeoutMs(ms)", job.timeout_s * 1000)
    _, capabilities = page.events("capabilities")[-1]
    _, loaded = page.events("loaded")[-1]
    return Report(job.n_samples, job.seed, capabilities["adapter"], version, loaded["model"])


class _Bench:
    """The samples of one phase.

    Args:
        job: how many, and of what.
        page: a page that is ready.
        name: of the phase.
        context_length: of the model.
    """

    def __init__(self, job: LifecycleJob, page: ClutchPage, name: str, context_length: int) -> None:
        self._job = job
        self._page = page
        self._phase = Phase(name)
        self._context_length = context_length
        self._random = random.Random(f"{job.seed} {name}")
        self._prompt = QUESTION
        self._window_ms = 0.0

    def run(self) -> Phase:
        """Find out how long the phase takes, then take every sample."""
        if self._phase.name == "decode":
            self._window_ms = self._decode_window_ms()
        else:
            self._prompt = self._long_prompt()
            self._window_ms = self._prefill_ms()
        for number in range(self._job.n_samples):
            for kind in ("stopped", "interrupted"):
                self._phase.add(self._hit(kind))
            say(f"{self._phase.name}: {number + 1} of {self._job.n_samples}")
        return self._phase

    def _decode_window_ms(self) -> float:
        """Write a little and return how long the steps take in which a click may come."""
        found = self._take("stopped", "decode", min_tokens=_DECODE_STEPS)
        return _DECODE_STEPS * float(found["step_ms"])

    def _prefill_ms(self) -> float:
        """Read the whole prompt and return how long that took."""
        found = self._take("stopped", "decode")
        self._phase.add({"prefill_ms": found["prefill_ms"]})
        return float(found["prefill_ms"])

    def _long_prompt(self) -> str:
        self._prompt = words(_PROBE_WORDS)
        n_tokens = self._take("stopped", "prefill")["prompt_tokens"]
        wanted = min(self._job.n_prompt_tokens, self._context_length - _SPARE_TOKENS)
        return words(words_for(wanted, _PROBE_WORDS, n_tokens))

    def _hit(self, kind: str) -> Found:
        """Take one sample at a random moment; again when the phase was over before the click."""
        for _ in range(_MOST_MISSES):
            found = self._take(kind, self._phase.name, self._window_ms * self._random.random())
            if not found["missed"]:
                return found
            self._phase.n_missed += 1
            if self._phase.name == "prefill" and found.get("prefill_ms"):
                self._window_ms = found["prefill_ms"]
                self._phase.add({"prefill_ms": found["prefill_ms"]})
        raise RuntimeError(f"{self._phase.name} was over before the click {_MOST_MISSES} times in a row.")

    def _take(self, kind: str, phase: str, delay_ms: float = 0.0, min_tokens: int = 1) -> Found:
        how = {"prompt": self._prompt, "phase": phase, "delayMs": delay_ms, "minTokens": min_tokens}
        evaluate: Callable[[str, object], Found] = self._page.page.evaluate
        return evaluate(f"how => window.clutchBench.{kind}(how)", how)
