"""From a `generate` message to its chat and the ids of its prompt, within the budgets."""

from collections.abc import Mapping, Sequence

from clutch.engine.overflow import Chat, Overflow
from clutch.errors import ContextLengthError, RequestError
from clutch.text.chat import ChatTemplate, encode_chat
from clutch.text.tokenizer import Tokenizer

# What is left out makes room for a quarter of the context at least, or every few tokens would leave out more.
ROOM_SHARE = 4


class Prompter:
    """Makes prompts for one model.

    Args:
        tokenizer, template: text to tokens.
        prompt_bytes: longest prompt, in UTF-8.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate, *, prompt_bytes: int) -> None:
        self.tokenizer = tokenizer
        self._template = template
        self._prompt_bytes = prompt_bytes

    def chat_of(self, messages: Sequence[Mapping[str, str]]) -> Chat:
        """Return messages as a chat that can be encoded and shortened."""
        return Chat(messages, lambda some: encode_chat(self.tokenizer, self._template, some))

    def read(
        self, message: dict[str, object], overflow: Overflow, *, max_tokens: int, context_length: int
    ) -> tuple[list[int], Chat | None]:
        """Return the prompt's ids, 1 <= len < context_length, and the chat they were made of; None for a raw prompt.

        Raises:
            RequestError: neither or both of `messages` and `prompt`, or an empty one.
            ContextLengthError: too many bytes or tokens, with both numbers; never cut unless it was asked for.
        """
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
        if messages is None:
            chat, prompt_ids = None, self.tokenizer.encode_prompt(str(prompt))
        else:
            chat = self.chat_of(messages)  # type: ignore[arg-type]
            prompt_ids = chat.token_ids()
        if not prompt_ids:
            raise RequestError("The prompt is empty.", hint="Type something first.")
        if len(prompt_ids) >= context_length and chat is not None and overflow is Overflow.DROP_OLDEST:
            chat, prompt_ids = chat.within(context_length - room_for(max_tokens, context_length))
        if len(prompt_ids) >= context_length:
            raise ContextLengthError(
                f"The prompt has {len(prompt_ids)} tokens; the context has room for {context_length - 1}.",
                hint="Shorten the prompt, or reset the conversation.",
                prompt_tokens=len(prompt_ids),
                context_length=context_length,
            )
        return prompt_ids, chat


def room_for(n_tokens: int, context_length: int) -> int:
    """Return how many positions to keep for an answer of `n_tokens`; at least 1."""
    return max(1, min(n_tokens, context_length // ROOM_SHARE))
