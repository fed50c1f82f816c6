"""A conversation: a session in the KV cache, and the text tools that turn messages into tokens and back."""

from clutch.engine.answer import Answer
from clutch.engine.control import StopMark
from clutch.engine.generation import Request, generate
from clutch.engine.platform import Platform
from clutch.engine.session import Session
from clutch.engine.stats import Stats
from clutch.engine.stopping import Stopping
from clutch.errors import ContextLengthError, RequestError
from clutch.gpu.ledger import Ledger
from clutch.kv.pool import Pool
from clutch.model.runner import Runner
from clutch.sampling.params import SamplingParams
from clutch.text.chat import ChatTemplate, encode_chat
from clutch.text.tokenizer import Tokenizer

MAX_TOP_LOGITS = 100


class Conversation:
    """Answers `generate` messages, one at a time; thrown away whole at Reset, never cleared field by field.

    Args:
        runner: of the model.
        tokenizer, template: text to tokens.
        pool: where its pages come from.
        context_length: positions it may fill.
        prompt_bytes: longest prompt, in UTF-8.
    """

    def __init__(
        self,
        runner: Runner,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        pool: Pool,
        *,
        context_length: int,
        prompt_bytes: int,
    ) -> None:
        self._runner = runner
        self._tokenizer = tokenizer
        self._template = template
        self._session = Session(pool)
        self._context_length = context_length
        self._prompt_bytes = prompt_bytes

    @property
    def kv_length(self) -> int:
        """Positions whose keys and values are kept."""
        return self._session.table.length

    def close(self) -> None:
        """Drop its pages."""
        self._session.close()

    async def answer(self, message: dict[str, object], platform: Platform, mark: StopMark, ledger: Ledger) -> None:
        """Answer a `generate` message: `started`, `delta`s, and exactly one `finished`.

        Raises:
            RequestError: the message or its prompt is wrong; nothing was computed, nothing is lost.
            PoolExhausted, DeviceLost, DeviceTimeout: as for `generate`.
        """
        ids = {"request_id": message["request_id"], "epoch": message["epoch"]}
        stats = Stats(platform.clock)
        request = self._request(message, platform, mark)
        num_cached_tokens = self._session.match(request.prompt_ids)
        platform.send("started", prompt_ids=list(request.prompt_ids), num_cached_tokens=num_cached_tokens, **ids)

        def send_delta(seq_no: int, text: str, token_ids: list[int]) -> None:
            platform.send("delta", seq_no=seq_no, text=text, token_ids=token_ids, **ids)

        answer = Answer(self._tokenizer.vocabulary, send_delta, platform.clock)
        outcome = await generate(request, self._session, self._runner, answer, stats)
        extra = {} if outcome.top_logits is None else {"top_logits": outcome.top_logits}
        platform.send(
            "finished",
            reason=outcome.reason,
            text=answer.finish(),
            output_ids=answer.token_ids,
            usage={
                "prompt_tokens": len(request.prompt_ids),
                "num_cached_tokens": num_cached_tokens,
                "completion_tokens": len(answer.token_ids),
                "kv_length": self.kv_length,
                "committed_tokens": len(self._session.token_ids),
                "context_length": self._context_length,
            },
            timings=stats.to_wire(),
            ledger=ledger.to_wire(),
            **ids,
            **extra,
        )

    def _request(self, message: dict[str, object], platform: Platform, mark: StopMark) -> Request:
        params = SamplingParams.from_wire(message["params"])  # type: ignore[arg-type]
        top_logits = message.get("top_logits", 0)
        if not isinstance(top_logits, int) or not 0 <= top_logits <= MAX_TOP_LOGITS:
            raise RequestError(f"top_logits is {top_logits}; allowed is 0 to {MAX_TOP_LOGITS}", field="top_logits")
        request_id = message["request_id"]
        assert isinstance(request_id, int)

        def on_prefill(done: int, total: int) -> None:
            platform.send("progress", phase="prefill", done=done, total=total, unit="tokens")

        return Request(
            prompt_ids=self._prompt_ids(message),
            params=params,
            stopping=Stopping(self._tokenizer.vocabulary.end_ids, params.max_tokens, self._context_length),
            top_logits=top_logits,
            is_stopped=lambda: mark.is_stopped(request_id),
            on_prefill=on_prefill,
        )

    def _prompt_ids(self, message: dict[str, object]) -> list[int]:
        messages, prompt = message.get("messages"), message.get("prompt")
        if (messages is None) == (prompt is None):
            raise RequestError("A generate message needs either messages or prompt.", hint="Send one of the two.")
        texts = [str(prompt)] if messages is None else [str(m) for m in messages]  # type: ignore[attr-defined]
        size_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        if size_bytes > self._prompt_bytes:
            raise ContextLengthError(
                f"The prompt has {size_bytes} bytes; the limit is {self._prompt_bytes}.",
                hint="Shorten the prompt.",
                prompt_bytes=size_bytes,
                limit_bytes=self._prompt_bytes,
            )
        prompt_ids = (
            self._tokenizer.encode_prompt(str(prompt))
            if messages is None
            else encode_chat(self._tokenizer, self._template, messages)  # type: ignore[arg-type]
        )
        if not prompt_ids:
            raise RequestError("The prompt is empty.", hint="Type something first.")
        if len(prompt_ids) >= self._context_length:
            raise ContextLengthError(
                f"The prompt has {len(prompt_ids)} tokens; the context has room for {self._context_length - 1}.",
                hint="Shorten the prompt, or reset the conversation.",
                prompt_tokens=len(prompt_ids),
                context_length=self._context_length,
            )
        return prompt_ids
