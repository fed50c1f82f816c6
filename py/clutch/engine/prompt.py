"""From a `generate` message to the ids of its prompt, within the budgets."""

from clutch.errors import ContextLengthError, RequestError
from clutch.text.chat import ChatTemplate, encode_chat
from clutch.text.tokenizer import Tokenizer


def prompt_ids_of(
    message: dict[str, object],
    tokenizer: Tokenizer,
    template: ChatTemplate,
    *,
    prompt_bytes: int,
    context_length: int,
) -> list[int]:
    """Return the prompt's ids, 1 <= len < context_length.

    Raises:
        RequestError: neither or both of `messages` and `prompt`, or an empty one.
        ContextLengthError: too many bytes or tokens, with both numbers; never cut silently.
    """
    messages, prompt = message.get("messages"), message.get("prompt")
    if (messages is None) == (prompt is None):
        raise RequestError("A generate message needs either messages or prompt.", hint="Send one of the two.")
    texts = [str(prompt)] if messages is None else [str(m) for m in messages]  # type: ignore[attr-defined]
    size_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if size_bytes > prompt_bytes:
        raise ContextLengthError(
            f"The prompt has {size_bytes} bytes; the limit is {prompt_bytes}.",
            hint="Shorten the prompt.",
            prompt_bytes=size_bytes,
            limit_bytes=prompt_bytes,
        )
    if messages is None:
        prompt_ids = tokenizer.encode_prompt(str(prompt))
    else:
        prompt_ids = encode_chat(tokenizer, template, messages)  # type: ignore[arg-type]
    if not prompt_ids:
        raise RequestError("The prompt is empty.", hint="Type something first.")
    if len(prompt_ids) >= context_length:
        raise ContextLengthError(
            f"The prompt has {len(prompt_ids)} tokens; the context has room for {context_length - 1}.",
            hint="Shorten the prompt, or reset the conversation.",
            prompt_tokens=len(prompt_ids),
            context_length=context_length,
        )
    return prompt_ids
