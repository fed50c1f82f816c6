"""The panel that measures how fast the loaded model is here: buttons, tables that grow, and all of it as JSON."""

import json

import js
from pyscript import ffi, window

from ui import benchmark, dom
from ui.benchmark_run import Run
from ui.benchmark_tables import tables


class BenchmarkPanel:
    """`details#benchmark`; `data-state` is "idle", "running" or how the last run ended.

    Args:
        strings: for everything it says.
    """

    def __init__(self, strings):
        self._strings = strings
        self._page = self._now_ms = None
        self._run = None
        self._facts = {}
        self._panel = dom.element("benchmark")
        self._start = dom.element("benchmark-start")
        self._stop = dom.element("benchmark-stop")
        self._copy = dom.element("benchmark-copy")
        self._bar = dom.element("benchmark-progress")
        self._line = dom.TextSlot(dom.element("benchmark-status"))
        self._tables = dom.element("benchmark-tables")
        self._json = dom.TextSlot(dom.element("benchmark-json"))
        self._is_copied = False
        self._shown = None

    @property
    def is_running(self):
        """Whether a run is under way; nothing else should use the GPU meanwhile."""
        return self._run is not None and not self._run.end

    def connect(self, page, now_ms):
        """Give every button its intent; `now_ms` is the page's clock."""
        self._page = page
        self._now_ms = now_ms
        dom.listen(self._start, "click", lambda _event: self._begin())
        dom.listen(self._stop, "click", lambda _event: self._end())
        dom.listen(self._copy, "click", lambda _event: self._copy_json())

    def hear(self, event):
        """Let the run hear an event of the engine."""
        if self.is_running and self._run.hear(event):
            self._note()

    def show(self, is_ready):
        """Show what there is; without a model that is idle nothing can be measured."""
        run = self._run
        state = "idle" if run is None else run.end or "running"
        self._panel.dataset.state = state
        self._start.hidden = state == "running"
        self._start.disabled = not is_ready
        self._stop.hidden = self._bar.hidden = state != "running"
        self._copy.hidden = state in ("idle", "running")
        if state == "running":
            self._bar.value = run.n_done / run.n_requests
        self._line.show(self._status(state))
        shown = (self._strings.language, run and (run.n_drawn, run.end, id(run)))
        if run is not None and shown != self._shown:
            self._shown = shown
            self._draw(run)

    def _status(self, state):
        if state == "idle":
            return ""
        if self._is_copied:
            return self._strings.text("benchmark.copied")
        if state == "running":
            return self._strings.text("benchmark.running", done=self._run.n_done, total=self._run.n_requests)
        if state in ("done", "stopped"):
            return self._strings.text("benchmark.ended." + state)
        return self._strings.text("benchmark.ended.error", code=state)

    # Intents ----------------------------------------------------------------------------------------------------------

    def _begin(self):
        page = self._page
        number = page.chats.free_number
        if number is None:
            page.refuse("E607")
            return
        # No chat may take the number before the engine has closed the session.
        page.chats.await_closed(number)
        self._facts = {
            "bench": "speed",
            "date": js.Date.new().toISOString(),
            "browser": window.navigator.userAgent,
            "adapter": page.adapter,
            "model": page.model,
            "load": page.load_facts,
        }
        self._is_copied = False
        self._run = Run(
            page.client,
            number,
            benchmark.plan(page.parameters, page.adapter.get("is_fallback", False)),
            benchmark.card(page.parameters, page.adapter),
            page.model["context_length"],
            self._now_ms,
        )
        self._note()

    def _end(self):
        if self.is_running:
            self._run.stop()
            self._note()

    def _note(self):
        run = self._run
        if run.end:
            if run.end == "E607":
                # There never was such a session, so it is not closed either.
                self._page.chats.note_closed(run.session)
            found = dict(self._facts, plan=run.plan, card=run.card, end=run.end, rows=run.rows, steps=run.steps)
            self._json.show(json.dumps(found))
        self._page.render()

    def _copy_json(self):
        text = dom.element("benchmark-json").textContent
        window.navigator.clipboard.writeText(text).then(
            ffi.create_proxy(lambda *_: self._say_copied()), ffi.create_proxy(lambda *_: self._offer_text())
        )

    def _say_copied(self):
        self._is_copied = True
        self._page.render()

    def _offer_text(self):
        # The browser gives no access to the clipboard: it can be taken by hand.
        dom.element("benchmark-json").hidden = False

    # Tables -----------------------------------------------------------------------------------------------------------

    def _draw(self, run):
        self._tables.replaceChildren()
        for caption, headings, lines in tables(self._strings, run.rows, run.steps, run.card):
            table = dom.create("table", "")
            title = dom.create("caption", "")
            title.textContent = caption
            table.append(title, _line("th", headings, len(headings)))
            for cells in lines:
                table.append(_line("td", cells, len(headings)))
            self._tables.append(table)


def _line(tag, texts, n_columns):
    line = dom.create("tr", "")
    for i, text in enumerate(texts):
        cell = dom.create("th" if i == 0 else tag, "")
        cell.scope = "col" if tag == "th" else "row"
        cell.textContent = dom.visible(text)
        line.append(cell)
    if len(texts) < n_columns:
        line.lastElementChild.colSpan = n_columns - len(texts) + 1
    return line
