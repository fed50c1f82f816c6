"""One question and its answer while the engine works on it. Imports on CPython for tests."""


class Exchange:
    """What the page knows of one request: a `generate`, or a `continue` of the same answer.

    Args:
        request_id: the number the engine knows it by.
        question: the user's Message.
        answer: the assistant's Message; its text grows here.
        asked: the params as the settings had them.
        started_ms: when Generate or Continue was pressed, on the page's clock.
        n_tokens: how many the answer has already.
    """

    def __init__(self, request_id, question, answer, asked, started_ms, n_tokens=0):
        self.request_id = request_id
        self.question = question
        self.answer = answer
        self.asked = asked
        self.n_tokens = n_tokens
        self._started_ms = started_ms
        self._first_ms = None
        self._n_prompt_tokens = 0
        # None until the engine has said it.
        self._n_reused_tokens = None
        # Of this request: when its first piece had come.
        self._n_first_tokens = 0

    @property
    def is_writing(self):
        """Whether this request has added to the answer."""
        return self._first_ms is not None

    def start(self, n_prompt_tokens, n_reused_tokens, text):
        """Note the prompt's length and how much was computed before, in tokens, and the answer so far.

        A stop may have cut a character of several tokens in two, and shown U+FFFD for it: `text` lacks that.
        """
        self._n_prompt_tokens = n_prompt_tokens
        # A continued answer is reused too, but is no part of the prompt.
        self._n_reused_tokens = min(n_reused_tokens, n_prompt_tokens)
        self.answer.text = text

    def shorten(self, n_prompt_tokens):
        """Note that the prompt has only so many tokens any more."""
        self._n_prompt_tokens = n_prompt_tokens
        if self._n_reused_tokens is not None:
            self._n_reused_tokens = min(self._n_reused_tokens, n_prompt_tokens)

    def append(self, text, n_tokens, now_ms):
        """Add one piece of the answer."""
        self.n_tokens += n_tokens
        if self._first_ms is None:
            self._first_ms = now_ms
            self._n_first_tokens = self.n_tokens
        self.answer.text += text

    def finish(self, n_tokens, reason):
        """Note the end, as the engine counts and calls it."""
        self.n_tokens = n_tokens
        self.answer.end = reason

    def changes(self, asked):
        """Return the params of a `continue`: only what differs, so that the answer is the one uninterrupted."""
        return {name: value for name, value in asked.items() if value != self.asked.get(name)}

    def copy(self, messages):
        """Return the same exchange about other messages: the [question, answer] of a copied chat."""
        question, answer = messages
        return Exchange(self.request_id, question, answer, self.asked, self._started_ms, self.n_tokens)

    def prompt_numbers(self):
        """Return `n_new` and `n_reused`, the prompt's tokens, once they are known."""
        if self._n_reused_tokens is None:
            return {}
        return {"n_new": self._n_prompt_tokens - self._n_reused_tokens, "n_reused": self._n_reused_tokens}

    def numbers(self, now_ms):
        """Return what is known so far for the numbers line; the engine's own numbers come later."""
        numbers = dict(self.prompt_numbers(), kv_length=self._n_prompt_tokens + self.n_tokens)
        if self._first_ms is not None:
            numbers["ttft_ms"] = self._first_ms - self._started_ms
            # The first piece is the end of the prompt's time, not of the writing's.
            n_written = self.n_tokens - self._n_first_tokens
            if n_written > 0 and now_ms > self._first_ms:
                numbers["tokens_per_s"] = 1000 * n_written / (now_ms - self._first_ms)
        return numbers
