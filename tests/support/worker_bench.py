"""Drives one engine worker without the page, with faults armed inside it; see `faulty_worker.js`."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, TimeoutError

from tests.support.worker_patch import patch_worker

Message = dict[str, Any]
Rule = dict[str, Any]

MODEL = "models/tiny.gguf"
MAX_TOKENS = 40
QUESTION: Message = {
    "messages": [{"role": "user", "content": "Count."}],
    "params": {"max_tokens": MAX_TOKENS},
    "top_logits": 1,
}
TIMEOUT_MS = 60_000
_FAULTY = Path(__file__).with_name("faulty_worker.js").read_text(encoding="utf-8")
_BENCH = Path(__file__).with_name("worker_bench.js")
# Any document of the site will do; this one brings no script along.
_DOCUMENT = "static/strings/en.json"
_TELL = """command => new Promise((resolve, reject) => {
    const channel = new BroadcastChannel("clutch-test-faults");
    setTimeout(() => reject(new Error("no worker answers")), 20_000);
    channel.onmessage = ({ data }) => { channel.close(); resolve(data); };
    channel.postMessage(command);
})"""


class FirstRules:
    """The rules with which the next worker of a context starts, and no later one."""

    def __init__(self, context: BrowserContext) -> None:
        self._rules: list[Rule] = []
        patch_worker(context, self._script)

    def set(self, *rules: Rule) -> None:
        """Give the next worker its rules."""
        self._rules = list(rules)

    def _script(self) -> str:
        rules, self._rules = self._rules, []
        return f"const FIRST_RULES = {json.dumps(rules)};\n{_FAULTY}"


def tell(page: Page, command: str, **fields: object) -> Message:
    """Send a command to the worker of `page`; return what fired there and what is alive on its GPU."""
    answer: Message = page.evaluate(_TELL, {"command": command, **fields})
    return answer


class WorkerBench:
    """One worker after the other, in one page.

    Args:
        page: of the site's origin, empty.
        url: of the site.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.first_rules = FirstRules(page.context)
        self.epoch = 0
        self.request_id = 0
        self.is_started = False
        self._page = page
        page.add_init_script(path=_BENCH)
        page.goto(url + _DOCUMENT)

    def start(self, *rules: Rule) -> None:
        """Start a new worker, with faults from its first line on."""
        self.first_rules.set(*rules)
        self.epoch = 0
        self._page.evaluate("bench.start()")
        self.is_started = True

    def arm(self, rule: Rule) -> None:
        """Arm a fault in the running worker."""
        tell(self._page, "arm", rule=rule)

    def clear(self) -> None:
        """Disarm everything; let the past be long ago."""
        tell(self._page, "clear")

    def report(self) -> Message:
        """Return what fired since `clear`, and how many buffers and devices are alive."""
        return tell(self._page, "report")

    def send(self, kind: str, **fields: object) -> None:
        """Send a message of the protocol."""
        self._page.evaluate("message => bench.send(message)", {"kind": kind, **fields})

    def number(self) -> int:
        """Return the next request's number."""
        self.request_id += 1
        return self.request_id

    @property
    def n_events(self) -> int:
        """How many events there were."""
        return int(self._page.evaluate("bench.events.length"))

    def events(self, since: int = 0) -> list[Message]:
        """Return what the worker said, heartbeats apart."""
        events: list[Message] = self._page.evaluate("n => bench.events.slice(n)", since)
        return events

    def wait(self, since: int, condition: str) -> None:
        """Wait until `condition`, JavaScript over the `events` since then, holds; a timeout says what there was."""
        script = f"n => {{ const events = bench.events.slice(n); return {condition}; }}"
        try:
            self._page.wait_for_function(script, arg=since, timeout=TIMEOUT_MS, polling=20)
        except TimeoutError as timeout:
            brief = [{k: v for k, v in e.items() if k not in ("model", "memory")} for e in self.events(since)]
            timeout.add_note(f"waited for {condition}; the worker said {brief}")
            timeout.add_note(str(self.report()))
            raise

    def load(self) -> None:
        """Load the model and wait until it is ready."""
        since = self.n_events
        self.send("load", request_id=self.number(), url=MODEL)
        self.wait(since, 'events.some(e => e.kind === "loaded") && events.at(-1).state === "ready"')

    def unload(self) -> None:
        """Give the model up."""
        since = self.n_events
        self.send("unload")
        self.wait(since, 'events.at(-1)?.state === "empty"')

    def reset(self) -> None:
        """Forget the conversation."""
        since = self.n_events
        self.epoch += 1
        self.send("reset", epoch=self.epoch)
        self.wait(since, f'events.some(e => e.state === "ready" && e.epoch === {self.epoch})')

    def ask(self) -> None:
        """Ask the question whose answer is known."""
        self.send("generate", request_id=self.number(), epoch=self.epoch, **QUESTION)

    def answer(self) -> list[int]:
        """Ask the question and return the answer's ids once the engine is ready again."""
        since = self.n_events
        self.ask()
        self.wait(since, 'events.some(e => e.kind === "finished") && events.at(-1).state === "ready"')
        (finished,) = (event for event in self.events(since) if event["kind"] == "finished")
        ids: list[int] = finished["output_ids"]
        return ids
