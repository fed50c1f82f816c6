"""The page as a user has it: open it, type, click, read; the driver and the browser tests share it."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from playwright.sync_api import Browser, TimeoutError

from tests.support.answers import Answer, read_answer
from tests.support.watch import Watch

RECORDER = Path(__file__).with_name("recorder.js")
# SwiftShader on two busy cores: the default model loads in half a minute and writes a token a second.
LOAD_TIMEOUT_MS = 120_000
ANSWER_TIMEOUT_MS = 240_000
# For a button that is there already when it is there at all.
CLICK_TIMEOUT_MS = 5_000

_OPENED = """() => {
    const state = document.body?.dataset.state, box = document.getElementById("error");
    if (state === "ready") return "ready";
    if (!["empty", "crashed", "unsupported"].includes(state)) return null;
    if (box && !box.hidden && box.dataset.code) return "error";
    return state === "empty" ? "stopped" : null;
}"""
_LOAD_ENDED = """n => {
    if (["loading", "starting", "stopping", "lost"].includes(document.body.dataset.state)) return null;
    const kinds = window.clutchRecorder.events.slice(n).map(([, text]) => JSON.parse(text).kind);
    return kinds.find(kind => ["loaded", "error", "finished"].includes(kind)) ?? null;
}"""
_ENDED = """n => {
    const isIdle = ["empty", "ready", "crashed", "unsupported"].includes(document.body.dataset.state);
    return isIdle && window.clutchRecorder.nEndings > n;
}"""
_RESET = """n => document.body.dataset.state === "ready"
    && window.clutchRecorder.events.slice(n).some(([, text]) => JSON.parse(text).state === "ready")"""
_SHOWN = """role => [...document.querySelectorAll(`#transcript article.message[data-role=${role}] .text`)]
    .map(element => element.innerText)"""
_NOTICE = """() => {
    const bar = document.getElementById("notice");
    return bar && !bar.hidden ? bar.querySelector(".words").textContent : null;
}"""
_CONFIGURE = """settings => {
    for (const [name, value] of Object.entries(settings)) {
        const input = document.querySelector(`#settings [name=${name}]`);
        if (input.type === "checkbox") input.checked = value;
        else input.value = value;
        input.dispatchEvent(new Event("input", { bubbles: true }));
    }
}"""
_ERROR = """() => {
    const box = document.getElementById("error");
    if (!box || box.hidden || !box.dataset.code) return null;
    const read = name => box.querySelector(name)?.textContent ?? "";
    return { code: box.dataset.code, message: read(".message"), hint: read(".hint") };
}"""


class ClutchPage:
    """One fresh browser context with the page in it.

    Args:
        browser: a launched Chromium.
        url: the server's address, with its slash at the end.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._url = url
        self.context = browser.new_context()
        self.context.add_init_script(path=RECORDER)
        self.watch = Watch(self.context, url)
        self.page = self.context.new_page()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.context.close()

    def open(self, model: str | None = None, *, timeout_ms: float = LOAD_TIMEOUT_MS, **settings: object) -> str:
        """Load the page with its settings in the address; return "ready" or "error".

        Args:
            model: path on the server, such as ``models/tiny.gguf``; the page's own default if None.
            timeout_ms: for everything up to "ready" or "error".
            settings: the page's URL parameters; lists and dicts travel as JSON.
        """
        query = f"?{urlencode({'model': model}, quote_via=quote)}" if model else ""
        fragment = urlencode({name: _text(value) for name, value in settings.items()}, quote_via=quote)
        # An address that differs from the last one in its fragment only would not be loaded again.
        self.page.goto("about:blank")
        self.page.goto(f"{self._url}{query}#{fragment}")
        return self.wait_loaded(timeout_ms)

    def wait_loaded(self, timeout_ms: float = LOAD_TIMEOUT_MS) -> str:
        """Wait for the end of a load; return "ready", "error" or "stopped"."""
        return str(self._wait(_OPENED, None, timeout_ms))

    def load_file(self, path: Path) -> str:
        """Choose a model file in the file picker; return "ready", "error" or "stopped" once that load has ended."""
        n_events = len(self.events())
        self.page.set_input_files("#model-file", path)
        kind = str(self._wait(_LOAD_ENDED, n_events, LOAD_TIMEOUT_MS))
        return {"loaded": "ready", "error": "error", "finished": "stopped"}[kind]

    def type(self, text: str) -> None:
        """Replace the text of the prompt box, as by pasting."""
        self.page.fill("#prompt", text)

    def configure(self, **settings: object) -> None:
        """Change fields of the settings form."""
        self.page.evaluate(_CONFIGURE, settings)

    def start(self, prompt: str | None = None, *, stop_after: int = 0) -> None:
        """Type `prompt` (None: what is there) and click Generate; see `recorder.js` for `stop_after`."""
        if prompt is not None:
            self.type(prompt)
        self._stop_after(stop_after)
        self.page.click("#generate")

    def generate(
        self, prompt: str | None = None, *, stop_after: int = 0, timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> Answer:
        """Ask and wait for the end of the answer."""
        n_endings = self.n_endings
        self.start(prompt, stop_after=stop_after)
        return self.wait_answer(n_endings, timeout_ms)

    @property
    def can_continue(self) -> bool:
        """Whether the page offers to go on with the last answer."""
        return self.is_enabled("continue") and self.page.is_visible("#continue")

    def start_continue(self, *, stop_after: int = 0) -> None:
        """Click Continue; `stop_after` counts the new tokens."""
        self._stop_after(stop_after)
        self.page.click("#continue", timeout=CLICK_TIMEOUT_MS)

    def continue_(self, *, stop_after: int = 0, timeout_ms: float = ANSWER_TIMEOUT_MS) -> Answer:
        """Go on with the last answer and wait for its end; the answer has the whole text and all ids."""
        n_endings = self.n_endings
        self.start_continue(stop_after=stop_after)
        return self.wait_answer(n_endings, timeout_ms)

    def edit(self) -> str:
        """Click Edit (or Ask again) at the last question; return what the prompt box holds then."""
        self.page.click("#edit")
        return self.page.input_value("#prompt")

    def is_enabled(self, button: str) -> bool:
        """Whether the button with this id could be clicked."""
        return self.page.is_enabled(f"#{button}")

    @property
    def n_endings(self) -> int:
        """How many requests have ended since the page was opened; a load counts when it did not end well."""
        return int(self.page.evaluate("window.clutchRecorder.nEndings"))

    def wait_answer(self, n_endings: int, timeout_ms: float = ANSWER_TIMEOUT_MS) -> Answer:
        """Wait until more than `n_endings` requests have ended and return the last answer."""
        self._wait(_ENDED, n_endings, timeout_ms)
        return self.answer()

    def wait_tokens(self, n_tokens: int) -> None:
        """Wait until the answer in progress has at least `n_tokens`; of a continued one the new ones count."""
        self._wait("n => window.clutchRecorder.nTokens >= n", n_tokens, ANSWER_TIMEOUT_MS)

    def wait_state(self, state: str, timeout_ms: float = ANSWER_TIMEOUT_MS) -> None:
        """Wait until the page is in `state`."""
        self._wait("s => document.body.dataset.state === s", state, timeout_ms)

    def stop(self) -> None:
        """Click Stop, whether or not a user could."""
        self.page.evaluate("document.getElementById('stop').click()")

    def reset(self) -> None:
        """Click Reset and wait until the page is ready again."""
        n_events = len(self.events())
        self.page.click("#reset")
        self._wait(_RESET, n_events, ANSWER_TIMEOUT_MS)

    @property
    def state(self) -> str:
        """The page's state."""
        return str(self.page.evaluate("document.body.dataset.state"))

    def shown(self, role: str = "assistant") -> list[str]:
        """Return the texts that the transcript shows for one role, oldest first."""
        return list(self.page.evaluate(_SHOWN, role))

    def error(self) -> dict[str, str] | None:
        """Return code, message and hint of the error that the page shows."""
        shown: dict[str, str] | None = self.page.evaluate(_ERROR)
        return shown

    def notice(self) -> str | None:
        """Return what the bar of things mended says."""
        words: str | None = self.page.evaluate(_NOTICE)
        return words

    def events(self, kind: str | None = None) -> list[tuple[float, dict[str, Any]]]:
        """Return when (ms) and what the engine said, oldest first."""
        events = [(at, json.loads(text)) for at, text in self.page.evaluate("window.clutchRecorder.events")]
        return [event for event in events if kind is None or event[1]["kind"] == kind]

    def answer(self) -> Answer:
        """Return the last answer as it is now."""
        clicks = [(at, button) for at, button in self.page.evaluate("window.clutchRecorder.clicks")]
        return read_answer(self.events(), clicks, next(iter(self.shown()[::-1]), None))

    def _stop_after(self, n_tokens: int) -> None:
        self.page.evaluate("n => { window.clutchRecorder.stopAfter = n }", n_tokens)

    def _wait(self, condition: str, argument: object, timeout_ms: float) -> object:
        """Wait until `condition` gives something true and return it; a timeout says what the page shows."""
        try:
            return self.page.wait_for_function(condition, arg=argument, timeout=timeout_ms).json_value()
        except TimeoutError as timeout:
            last = [event for _, event in self.events() if event["kind"] != "heartbeat"][-2:]
            timeout.add_note(f"state {self.state}; error {self.error()}; last events {last}; {self.watch.faults}")
            raise


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
