"""What the KV pool saves, holds and costs: one engine worker in an empty page, timed by `kv_bench.js`.

Every answer is greedy. Prompts are raw text of one-token words, so that their length in tokens can be chosen.
"""

import json
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from tests.bench.arguments import KvJob
from tests.bench.kv_client import Found, KvClient
from tests.bench.kv_pages import Capacity, Utilisation
from tests.bench.kv_quality import Case, Quality
from tests.bench.kv_report import KvReport
from tests.bench.kv_target import Part
from tests.bench.kv_throughput import Throughput
from tests.bench.kv_ttft import TTFT_KINDS, Ttft
from tests.bench.prompts import words, words_for
from tests.bench.stage import model_url, say, stage
from tests.bench.workload import Ranges, draw
from tests.support.watch import Watch
from ui.loading import DEFAULT_MODEL

GOLDEN = Path(__file__).parents[1] / "golden" / "smollm2_greedy.json"
# Room for the whole workload, so that nothing is taken from a session while it is measured.
POOL_POSITIONS = 8192
SESSION_COUNTS = (1, 2, 4, 8)
# The page is a bare document, for which the browser wants an icon.
_NO_FAULTS = ("favicon",)
_PROBE_WORDS = 16
_QUESTION_TOKENS = 16
_FIRST_ANSWER_TOKENS = 16
_TOP_LOGITS = 50
_STORY = "Write a short story about {}."
_HEROES = ("a robot", "a fox", "a lighthouse", "two sisters", "an old map", "the sea", "a lost key", "a violin")


def measure(job: KvJob) -> KvReport:
    """Take all samples.

    Raises:
        playwright.sync_api.Error: the engine reported an error, or did not answer in time.
    """
    with stage(job) as (browser, site), closing(browser.new_context()) as context:
        watch = Watch(context, site)
        client = KvClient(context.new_page(), site, job.timeout_s)
        bench = _Bench(job, client, site)
        report = KvReport(
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            command=job.command,
            adapter=client.adapter,
            chromium=browser.version,
            model=bench.load("f16")["model"],
            pool_positions=POOL_POSITIONS,
            n_samples=job.n_samples,
            seed=job.seed,
        )
        for name in job.parts:
            say(name)
            report.parts[name] = bench.part(name, report.model["context_length"])
        report.faults += watch.take(_NO_FAULTS)
        return report


class _Bench:
    """The parts of the report, one method each.

    Args:
        job: how many samples, of what.
        client: an engine.
        site: its address.
    """

    def __init__(self, job: KvJob, client: KvClient, site: str) -> None:
        self._job = job
        self._client = client
        self._url = site + (model_url(job) or DEFAULT_MODEL)

    def load(self, kv_format: str) -> Found:
        """Load the model and return what the engine says of it."""
        return self._client.load(self._url, pool_positions=POOL_POSITIONS, kv_format=kv_format)

    def part(self, name: str, context_length: int) -> Part:
        """Measure one part, of `arguments.PARTS`."""
        match name:
            case "ttft":
                return self._ttft()
            case "utilisation":
                return Utilisation(self._workload["pools"], self._ranges.to_json(), self._job.seed, self._lengths)
            case "capacity":
                return Capacity(self._workload["pools"][-1], self._lengths, context_length)
            case "throughput":
                return self._throughput()
            case _:
                return self._quality()

    def _ttft(self) -> Ttft:
        client, prefix = self._client, self._text_of(self._job.n_history_tokens)
        questions = {kind: f" {words(_QUESTION_TOKENS, kind)}" for kind in TTFT_KINDS}
        samples: dict[str, list[Found]] = {kind: [] for kind in TTFT_KINDS}
        # The first round is thrown away: the engine learns there how many tokens it reads at a time.
        for number in range(self._job.n_samples + 1):
            client.reset()
            cold = client.generate(0, _FIRST_ANSWER_TOKENS, prompt=prefix)
            second_turn = client.generate(0, 1, prompt=prefix + cold["text"] + questions["second_turn"])
            with client.open(1, source=0):
                forked = client.generate(1, 1, prompt=prefix + questions["forked"])
            with client.open(1):
                shared = client.generate(1, 1, prompt=prefix + questions["shared"])
            if number:
                for kind, found in zip(TTFT_KINDS, (cold, second_turn, forked, shared), strict=True):
                    samples[kind].append(found)
            say(f"ttft: {number} of {self._job.n_samples}")
        client.reset()
        return Ttft(samples)

    def _text_of(self, n_tokens: int) -> str:
        """Return a raw prompt of so many tokens."""
        probe = self._client.generate(0, 1, prompt=words(_PROBE_WORDS))
        return words(words_for(n_tokens, _PROBE_WORDS, probe["prompt_tokens"]))

    @property
    def _ranges(self) -> Ranges:
        return Ranges().scaled(self._job.workload_scale)

    @cached_property
    def _workload(self) -> Found:
        sessions = draw(self._ranges, self._job.seed)
        with self._client.sessions(len(sessions)):
            return self._client.workload(sessions)

    @property
    def _lengths(self) -> list[int]:
        return [answers[-1]["kv_length"] for answers in self._workload["answers"]]

    def _throughput(self) -> Throughput:
        samples: dict[int, list[list[Found]]] = {}
        for count in SESSION_COUNTS:
            samples[count] = []
            for number in range(self._job.n_samples):
                with self._client.sessions(count) as sessions:
                    samples[count].append(self._client.together([self._story(session) for session in sessions]))
                say(f"throughput, {count} sessions: {number + 1} of {self._job.n_samples}")
        return Throughput(samples)

    def _story(self, session: int) -> Found:
        content = _STORY.format(_HEROES[session])
        return {
            "session": session,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self._job.n_answer_tokens,
        }

    def _quality(self) -> Quality:
        cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["prompts"]
        answers: dict[str, list[Found]] = {}
        pool_bytes: dict[str, int] = {}
        for kv_format in ("f16", "q8"):
            pool_bytes[kv_format] = self.load(kv_format)["memory"]["kv"]
            answers[kv_format] = []
            for case in cases:
                asked = {"messages": case["messages"]} if case["messages"] else {"prompt": case["prompt"]}
                self._client.reset()
                answers[kv_format].append(
                    self._client.generate(0, self._job.n_answer_tokens, top_logits=_TOP_LOGITS, **asked)
                )
                say(f"quality, {kv_format}: {case['name']}")
        self.load("f16")
        return Quality(
            [Case.of(case["name"], *pair) for case, *pair in zip(cases, answers["f16"], answers["q8"], strict=True)],
            pool_bytes,
        )
