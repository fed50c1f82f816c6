"""The answer as it grows: token ids, and their text in deltas of at most one an animation frame."""

from collections.abc import Callable, Sequence

from clutch.errors import InternalError
from clutch.text.detokenizer import Detokenizer, decode_all
from clutch.text.vocabulary import Vocabulary

FRAME_SECONDS = 1 / 60


class Answer:
    """Collects tokens and sends their text.

    Args:
        vocabulary: turns ids into bytes.
        send: called with (seq_no, text, token_ids) of each delta; seq_no counts from 0.
        clock: seconds.
        token_ids: of the answer that goes on, in which case only what is new is sent.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        send: Callable[[int, str, list[int]], None],
        clock: Callable[[], float],
        token_ids: Sequence[int] = (),
    ) -> None:
        self.token_ids = list(token_ids)
        self._vocabulary = vocabulary
        self._detokenizer = Detokenizer(vocabulary)
        self._send = send
        self._clock = clock
        self._sent_text = ["".join(self._detokenizer.push(token_id) for token_id in token_ids)]
        self._n_deltas = 0
        self._unsent_text = ""
        self._unsent_ids: list[int] = []
        self._next_frame = 0.0

    @property
    def text_so_far(self) -> str:
        """The text that was sent, without the beginning of a character that is not complete."""
        return "".join(self._sent_text)

    def push(self, token_id: int) -> None:
        """Add a token; its text is sent unless this frame already had a delta."""
        self.token_ids.append(token_id)
        self._unsent_ids.append(token_id)
        self._unsent_text += self._detokenizer.push(token_id)
        now = self._clock()
        if now >= self._next_frame:
            self._next_frame = now + FRAME_SECONDS
            self._flush()

    def cut(self) -> None:
        """Drop the tokens that were not sent: nothing is shown after a Stop, and Continue makes them again."""
        n_unsent = len(self._unsent_ids)
        if n_unsent:
            del self.token_ids[-n_unsent:]
            self._unsent_ids = []
            self._unsent_text = ""
            self._detokenizer = Detokenizer(self._vocabulary)
            for token_id in self.token_ids:
                self._detokenizer.push(token_id)

    def finish(self) -> str:
        """Send what is left and return the whole text.

        Raises:
            InternalError: the deltas do not add up to the text of all ids.
        """
        self._unsent_text += self._detokenizer.finish()
        if self._unsent_ids or self._unsent_text:
            self._flush()
        text = decode_all(self._vocabulary, self.token_ids)
        if self.text_so_far != text:
            raise InternalError("The streamed text differs from the text of all tokens.", n_tokens=len(self.token_ids))
        return text

    def _flush(self) -> None:
        self._send(self._n_deltas, self._unsent_text, self._unsent_ids)
        self._sent_text.append(self._unsent_text)
        self._n_deltas += 1
        self._unsent_text = ""
        self._unsent_ids = []
