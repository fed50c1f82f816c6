"""The events of one request: `started`, `delta`s, and exactly one `finished`."""

from clutch.engine.answer import Answer
from clutch.engine.conversation import Conversation
from clutch.engine.gauge import PoolGauge
from clutch.engine.generation import ABORT, Outcome
from clutch.engine.platform import Platform
from clutch.engine.stats import Stats
from clutch.engine.turn import Turn
from clutch.gpu.ledger import Ledger


class Reply:
    """Sends what a request says, under its own number, session and epoch.

    Args:
        platform: the outside world.
        ledger: for the last event.
        gauge: of the pool; looked at whenever something was computed.
        request_id, session, epoch: of the request; a Reset meanwhile does not change them.
    """

    def __init__(
        self, platform: Platform, ledger: Ledger, gauge: PoolGauge, *, request_id: int, session: int, epoch: int
    ) -> None:
        self.request_id = request_id
        self.stats = Stats(platform.clock)
        self._platform = platform
        self._ledger = ledger
        self._gauge = gauge
        self._session = session
        self._epoch = epoch
        self._num_cached_tokens = 0

    def start(self, turn: Turn, conversation: Conversation) -> Answer:
        """Say that `turn` starts, or goes on, and return its answer so far."""
        assert conversation.sequence is not None
        if turn.reuse:
            self._num_cached_tokens = conversation.sequence.match([*turn.prompt_ids, *turn.output_ids])
        answer = Answer(conversation.vocabulary, self._send_delta, self._platform.clock, turn.output_ids)
        self._send(
            "started",
            prompt_ids=turn.prompt_ids,
            num_cached_tokens=self._num_cached_tokens,
            text=answer.text_so_far,
        )
        if turn.chat is not None and turn.chat.n_dropped:
            self.trimmed(turn)
        return answer

    def prefilled(self, done: int, total: int) -> None:
        """Say how far the prompt is read."""
        self._platform.send("progress", phase="prefill", done=done, total=total, unit="tokens", session=self._session)
        if done < total:
            # Else the first token is there, and goes first.
            self._gauge.look()

    def trimmed(self, turn: Turn) -> None:
        """Say that the oldest turns were left out, to make room."""
        assert turn.chat is not None
        n_dropped = turn.chat.n_dropped
        self._send("trimmed", dropped_messages=n_dropped, prompt_tokens=len(turn.prompt_ids))

    def finish(self, outcome: Outcome, answer: Answer, turn: Turn, conversation: Conversation) -> None:
        """Say how the turn ended."""
        extra = {} if outcome.top_logits is None else {"top_logits": outcome.top_logits}
        self._send_finished(
            outcome.reason,
            answer.finish(),
            turn.output_ids,
            usage=conversation.usage(turn, self._num_cached_tokens),
            timings=self.stats.to_wire(),
            **extra,
        )

    def measured(self, done: int, total: int) -> None:
        """Say how far a step is measured."""
        self._platform.send("progress", phase="benchmark", done=done, total=total, unit="", session=self._session)

    def benchmarked(self, step: dict[str, object]) -> None:
        """Say what a step costs."""
        self._send("benchmarked", step=step)

    def abort(self) -> None:
        """Say that a request was stopped before it had anything to say."""
        self._send_finished(ABORT, "", [], usage={}, timings={})

    def _send_delta(self, seq_no: int, text: str, token_ids: list[int]) -> None:
        self._send("delta", seq_no=seq_no, text=text, token_ids=token_ids)
        self._gauge.look()

    def _send_finished(self, reason: str, text: str, output_ids: list[int], **fields: object) -> None:
        self._send("finished", reason=reason, text=text, output_ids=output_ids, ledger=self._ledger.to_wire(), **fields)

    def _send(self, kind: str, **fields: object) -> None:
        self._platform.send(kind, request_id=self.request_id, session=self._session, epoch=self._epoch, **fields)
