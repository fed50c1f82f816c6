"""One question and its answer while the engine works on it. Imports on CPython for tests."""


class Exchange:
    """What the page knows of the running request.

    Args:
        request_id: the number the engine knows it by.
        question: the user's Message.
        answer: the assistant's Message; its text grows here.
        started_ms: when Generate was pressed, on the page's clock.
    """

    def __init__(self, request_id, question, answer, started_ms):
        self.request_id = request_id
        self.question = question
        self.answer = answer
        self._started_ms = started_ms
        self._first_ms = None
        self._n_prompt_tokens = 0
        self._n_tokens = 0
        self._n_first_tokens = 0

    @property
    def has_text(self):
        """Whether the engine has sent any of the answer."""
        return self._first_ms is not None

    def start(self, n_prompt_tokens):
        """Note how long the prompt is, in tokens."""
        self._n_prompt_tokens = n_prompt_tokens

    def append(self, text, n_tokens, now_ms):
        """Add one piece of the answer."""
        if self._first_ms is None:
            self._first_ms = now_ms
            self._n_first_tokens = n_tokens
        self._n_tokens += n_tokens
        self.answer.text += text

    def numbers(self, now_ms):
        """Return what is known so far of `kv_length`, `ttft_ms` and `tokens_per_s`; the engine's own come later."""
        numbers = {"kv_length": self._n_prompt_tokens + self._n_tokens}
        if self._first_ms is not None:
            numbers["ttft_ms"] = self._first_ms - self._started_ms
            # The first piece is the end of the prompt's time, not of the writing's.
            n_written = self._n_tokens - self._n_first_tokens
            if n_written > 0 and now_ms > self._first_ms:
                numbers["tokens_per_s"] = 1000 * n_written / (now_ms - self._first_ms)
        return numbers
