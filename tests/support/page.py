"""The page as a user has it: open it, type, click, read; the driver and the browser tests share it."""

import json
from collections.abc import Callable
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
_CHAT_ENDED = """([session, n]) => {
    const counts = window.clutchRecorder.sessions[session];
    return counts && ["empty", "ready"].includes(counts.state) && counts.nEndings > n;
}"""
_OPENED_CHAT = """([session, n]) => Number(document.body.dataset.session) !== session
    && !["opening", "restoring"].includes(document.body.dataset.state)
    && document.querySelectorAll("#tabs [role=tab]").length === n"""
_CHATS = """() => [...document.querySelectorAll("#tabs [role=tab]")].map(tab =>
    [Number(tab.dataset.session), tab.querySelector(".title").textContent, tab.dataset.state])"""
_SAVED = """() => [...document.querySelectorAll("#saved-list li")].map(item =>
    item.querySelector(".title").textContent).reverse()"""
_SAVED_BUTTON = """([index, action]) => [...document.querySelectorAll("#saved-list li")].reverse()[index]
    .querySelector(`[data-action=${action}]`).click()"""
_COME = """([kinds, n]) => window.clutchRecorder.events.slice(n)
    .some(([, text]) => kinds.includes(JSON.parse(text).kind))"""
_RESET = """n => document.body.dataset.state === "ready"
    && window.clutchRecorder.events.slice(n).map(([, text]) => JSON.parse(text)).some(event =>
        event.state === "ready" && event.session === Number(document.body.dataset.session))"""
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

    def endings_of(self, session: int) -> int:
        """How many requests of one session have ended since the page was opened."""
        return int(self.page.evaluate("n => window.clutchRecorder.sessions[n]?.nEndings ?? 0", session))

    def wait_answer(
        self, n_endings: int, timeout_ms: float = ANSWER_TIMEOUT_MS, *, session: int | None = None
    ) -> Answer:
        """Wait until more than `n_endings` requests have ended and return the last answer.

        Args:
            n_endings: of all sessions, see `n_endings`; with a `session` of that one, see `endings_of`.
            timeout_ms: the longest wait.
            session: whose answer; of the chat in view if None.
        """
        if session is None:
            self._wait(_ENDED, n_endings, timeout_ms)
        else:
            self._wait(_CHAT_ENDED, [session, n_endings], timeout_ms)
        return self.answer(session)

    def wait_tokens(self, n_tokens: int, *, session: int | None = None) -> None:
        """Wait until the answer in progress has at least `n_tokens`; of a continued one the new ones count.

        Args:
            n_tokens: how many.
            session: whose; those of all sessions since the last start if None.
        """
        counts = "window.clutchRecorder" + ("" if session is None else f".sessions[{session}]")
        self._wait(f"n => {counts}?.nTokens >= n", n_tokens, ANSWER_TIMEOUT_MS)

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
    def session(self) -> int:
        """The session of the chat in view."""
        return int(self.page.evaluate("Number(document.body.dataset.session)"))

    def chats(self) -> list[tuple[int, str, str]]:
        """Return (session, title, what its dot says) of every chat, in the order of the tabs.

        The dot says "idle", "writing", "stopped" or "trouble".
        """
        return [(session, title, state) for session, title, state in self.page.evaluate(_CHATS)]

    def new_chat(self) -> int:
        """Open a chat and wait until it can be used; return its session."""
        return self._open_chat("new-chat")

    def fork(self) -> int:
        """Open a copy of the chat in view and wait until it can be used; return its session."""
        return self._open_chat("fork")

    def switch(self, session: int) -> None:
        """Bring another chat into view."""
        self.page.evaluate("n => document.getElementById(`tab-${n}`).click()", session)

    def close_chat(self) -> None:
        """Close the chat in view and wait until the engine has done it."""
        self._act("closed", lambda: self.page.click("#close", timeout=CLICK_TIMEOUT_MS))

    def save(self, *, with_kv: bool = False) -> str:
        """Save the chat in view and wait for it; return the name that it has got, "" after an error."""
        before = self.saved()
        self.configure(with_kv=with_kv)
        self._act("saved", lambda: self.page.click("#save", timeout=CLICK_TIMEOUT_MS))
        return next((name for name in self.saved() if name not in before), "")

    def saved(self) -> list[str]:
        """Return the names of the saved chats, oldest first."""
        return list(self.page.evaluate(_SAVED))

    def wait_saved(self, name: str) -> int:
        """Wait until the saved chat `name` is listed, which is a moment after the model is ready; return its index."""
        self._wait(f"name => ({_SAVED})().includes(name)", name, CLICK_TIMEOUT_MS)
        return self.saved().index(name)

    def restore(self, index: int) -> int:
        """Restore the saved chat at `index` of `saved()` and wait for it, or its error; return the session in view."""
        self._act("restored", lambda: self.page.evaluate(_SAVED_BUTTON, [index, "restore"]))
        self._wait("() => document.body.dataset.state === 'ready'", None, ANSWER_TIMEOUT_MS)
        return self.session

    def delete(self, index: int) -> None:
        """Delete the saved chat at `index` of `saved()`."""
        self._act("saved", lambda: self.page.evaluate(_SAVED_BUTTON, [index, "delete"]))

    def pool(self) -> dict[str, Any] | None:
        """Return the last `pool` event."""
        return next((event for _, event in reversed(self.events("pool"))), None)

    def _open_chat(self, button: str) -> int:
        before = [self.session, len(self.chats()) + 1]
        # Before the first question there is no row of chats yet, but its buttons work.
        self.page.evaluate("id => document.getElementById(id).click()", button)
        self._wait(_OPENED_CHAT, before, ANSWER_TIMEOUT_MS)
        return self.session

    def _act(self, kind: str, action: Callable[[], object]) -> None:
        """Do something and wait for the event of this kind, or for an error."""
        n_events = len(self.events())
        action()
        self._wait(_COME, [[kind, "error"], n_events], ANSWER_TIMEOUT_MS)

    @property
    def state(self) -> str:
        """The state of the chat in view."""
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

    def answer(self, session: int | None = None) -> Answer:
        """Return the last answer as it is now, of one session or of the chat in view; out of view it has no `text`."""
        in_view = self.session
        wanted = in_view if session is None else session
        clicks = [(at, button) for at, button, of in self.page.evaluate("window.clutchRecorder.clicks") if of == wanted]
        events = [(at, event) for at, event in self.events() if event.get("session") in (None, wanted)]
        text = next(iter(self.shown()[::-1]), None) if wanted == in_view else None
        return read_answer(events, clicks, text)

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
