"""One run of the benchmark: its requests one after the other, in a session of its own. Imports on CPython for tests."""

from ui import benchmark

# States in which the engine has no model for us any more.
_GONE = ("empty", "loading", "lost")


class Run:
    """Asks, measures and keeps what was found; the session is closed at the end, whatever the end is.

    Args:
        client: of the engine.
        session: a number that no chat has.
        plan: see `benchmark.plan`.
        card: see `benchmark.card`.
        context_length: of the loaded model.
        now_ms: the page's clock.
    """

    def __init__(self, client, session, plan, card, context_length, now_ms):
        self.session = session
        self.plan = plan
        self.card = card
        self.rows = []
        self.steps = []
        # "" while it runs; then "done", "stopped", or the code of an error.
        self.end = ""
        self.n_done = 0
        # Rows that are drawn: as many as there were before a request that is not measured, or drawing would be in it.
        self.n_drawn = 0
        self._client = client
        self._context_length = context_length
        self._now_ms = now_ms
        self._story = self._tell()
        self._request_id = None
        # What the request has brought, once it has ended; the next goes out when the session is ready again.
        self._found = None
        self._is_begun = False
        client.open_session(session)

    @property
    def n_requests(self):
        """How many requests there are in all."""
        fitting = [n for n in self.plan["prompt_tokens"] if self._room(n) is not None]
        n_second = len([n for n in fitting if self._has_second(n)])
        return 1 + len(fitting) * (2 + self.plan["samples"]) + n_second

    def stop(self):
        """End it here; what was found stays."""
        self._finish("stopped")

    def hear(self, event):
        """Take note of an event of the engine; return whether anything changed that can be shown."""
        if self.end:
            return False
        kind = event["kind"]
        if kind == "error":
            return self._fail(event)
        if event.get("session") != self.session:
            return False
        if kind == "state":
            return self._enter(event["state"])
        if event.get("request_id") != self._request_id:
            return False
        if kind == "started":
            self._sample["prompt_tokens"] = len(event["prompt_ids"])
        elif kind == "delta":
            self._write(len(event["token_ids"]))
        elif kind == "finished":
            self._end_answer(event)
        elif kind == "benchmarked":
            self._found = event["step"]
        return False

    def _tell(self):
        self._measure(self.plan["chunk_tokens"])
        self.steps.append((yield))
        for i, n_tokens in enumerate(self.plan["prompt_tokens"]):
            room = self._room(n_tokens)
            if room is None:
                self.rows.append(benchmark.too_long(n_tokens, self._context_length))
                continue
            samples = []
            self.n_drawn = len(self.rows)
            for seed in range(1 + self.plan["samples"]):
                prompt = benchmark.prompt_of(n_tokens, 1000 * i + seed)
                self._ask(prompt, room)
                samples.append((yield))
            self._measure(1)
            step = yield
            self.steps.append(step)
            row = benchmark.row(n_tokens, samples[1:], step, self.card)
            self.rows.append(row)
            if self._has_second(n_tokens):
                question = benchmark.prompt_of(benchmark.QUESTION_TOKENS, i)
                self._ask(prompt + self._text + question, 1, reuse=True)
                row["second_turn_ttft_ms"] = (yield)["ttft_ms"]

    def _room(self, n_tokens):
        return benchmark.answer_room(n_tokens, self.plan["answer_tokens"], self._context_length)

    def _has_second(self, n_tokens):
        n_more = self.plan["answer_tokens"] + benchmark.QUESTION_TOKENS
        return benchmark.answer_room(n_tokens + n_more, 1, self._context_length) is not None

    # Requests ---------------------------------------------------------------------------------------------------------

    def _measure(self, n_tokens):
        self._request_id = self._client.measure(self.session, tokens=n_tokens)

    def _ask(self, prompt, max_tokens, reuse=False):
        self._sample = {"prompt_tokens": 0, "ttft_ms": None}
        self._n_first = self._n_tokens = 0
        self._asked_ms = self._first_ms = self._last_ms = self._now_ms()
        self._request_id = self._client.generate(
            self.session,
            prompt=prompt,
            params={"max_tokens": max_tokens, "temperature": 0},
            reuse=reuse,
            ignore_eos=True,
        )

    def _write(self, n_tokens):
        self._last_ms = self._now_ms()
        self._n_tokens += n_tokens
        if self._sample["ttft_ms"] is None:
            self._first_ms = self._last_ms
            self._n_first = self._n_tokens
            self._sample["ttft_ms"] = self._first_ms - self._asked_ms

    def _end_answer(self, event):
        if event["reason"] == "abort":
            # Somebody else has stopped it.
            self._finish("stopped")
            return
        written_ms = self._last_ms - self._first_ms
        n_after = self._n_tokens - self._n_first
        timings = event["timings"]
        self._text = event["text"]
        self._found = dict(
            self._sample,
            output_tokens=len(event["output_ids"]),
            tokens_per_s=1000 * n_after / written_ms if n_after and written_ms > 0 else None,
            engine_ttft_ms=timings["ttft_ms"],
            step_ms=timings["step_ms"],
            python_ms=timings["python_ms"],
        )

    # Ends -------------------------------------------------------------------------------------------------------------

    def _enter(self, state):
        if state in _GONE:
            self._finish("E602")
            return True
        if state != "ready" or (self._is_begun and self._found is None):
            return False
        found, self._found = self._found, None
        if self._is_begun:
            self.n_done += 1
        self._is_begun = True
        try:
            self._story.send(found)
        except StopIteration:
            self._finish("done")
        return True

    def _fail(self, event):
        is_ours = event["session"] == self.session or event["code"] == "E700"
        if is_ours:
            self._finish(event["code"])
        return is_ours

    def _finish(self, end):
        self.end = end
        self._client.close_session(self.session, is_stopping=end != "done")
