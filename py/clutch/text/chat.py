"""Messages to token ids, through the model's own chat template.

The template decides what a turn looks like, bos included; nothing is added to it. What is typed into a
message stays text: a control token in it is spelled out in ordinary tokens (see `shield`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jinja2.exceptions import TemplateError as JinjaError

from clutch.errors import RequestError, TemplateError, UnsupportedModelError
from clutch.text.shield import Shield
from clutch.text.template_meter import MAX_SIZE
from clutch.text.template_sandbox import BoundedEnvironment
from clutch.text.tokenizer import Tokenizer, well_formed
from clutch.text.vocabulary import Vocabulary

MAX_TEMPLATE_BYTES = 64 * 1024
MAX_MESSAGES = 1000
ROLES = ("system", "user", "assistant", "tool")

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: Jinja, at most 64 KiB.
        bos_token, eos_token: texts that the template may write; "" where the model has none.

    Raises:
        TemplateError: the source is too long or does not compile.
    """

    def __init__(self, source: str, bos_token: str, eos_token: str) -> None:
        size_bytes = len(source.encode("utf-8", "surrogatepass"))
        if size_bytes > MAX_TEMPLATE_BYTES:
            raise TemplateError(f"the chat template has {size_bytes} bytes; at most {MAX_TEMPLATE_BYTES} are read")
        self._environment = BoundedEnvironment()
        self._environment.globals |= {
            "bos_token": bos_token,
            "eos_token": eos_token,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }
        try:
            self._template = self._environment.compile_bounded(source)
        except Exception as error:  # a stranger's program: parser, code generator and Python may all object
            raise TemplateError(f"the chat template does not compile: {_reason(error)}") from error

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], vocabulary: Vocabulary) -> "ChatTemplate":
        """Return the template of a model file, or ChatML where the file has none but knows its tokens.

        Raises:
            UnsupportedModelError: the file has no template and does not know ChatML.
            TemplateError: as for the class.
        """
        source = metadata.get("tokenizer.chat_template")
        if not isinstance(source, str):
            if "<|im_start|>" not in vocabulary.control:
                raise UnsupportedModelError(
                    "the model file has no chat template and no <|im_start|> token",
                    hint="Use a model that was tuned for chat, or send a raw prompt.",
                )
            source = CHATML
        bos, eos = (
            "" if token_id is None else vocabulary.tokens[token_id]
            for token_id in (vocabulary.bos_id, vocabulary.eos_id)
        )
        return cls(source, bos, eos)

    def render(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
        """Return the conversation as the model expects it, ready for its answer.

        Raises:
            TemplateError: the template rejected the messages, failed, or wrote or worked too much.
        """
        self._environment.meter.reset()
        pieces: list[str] = []
        n_characters = 0
        try:
            variables = {"messages": messages, "add_generation_prompt": add_generation_prompt}
            for piece in self._template.generate(variables):
                n_characters += len(piece)
                if n_characters > MAX_SIZE:
                    raise TemplateError(f"the chat template wrote more than {MAX_SIZE} characters")
                pieces.append(piece)
        except TemplateError:
            raise
        except Exception as error:  # a stranger's program may raise anything
            raise TemplateError(f"the chat template rejected the messages: {_reason(error)}") from error
        return "".join(pieces)


def encode_chat(tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the ids of a conversation; control tokens come from the template alone.

    Raises:
        RequestError: not 1 to 1,000 messages of a known role and a text.
        TemplateError: the template rejected them.
    """
    check_messages(messages)
    covered = [
        {key: tokenizer.shield.cover(well_formed(text)) for key, text in message.items()} for message in messages
    ]
    token_ids: list[int] = []
    for piece, token_id in tokenizer.split(template.render(covered)):
        if token_id is None:
            token_ids += tokenizer.encode(Shield.uncover(piece), parse_special=False)
        else:
            token_ids.append(token_id)
    return token_ids


def check_messages(messages: object) -> None:
    """Raise RequestError unless these are 1 to 1,000 messages, each with a known role and a text."""
    if not isinstance(messages, list | tuple) or not 1 <= len(messages) <= MAX_MESSAGES:
        found = f"{len(messages)} items" if isinstance(messages, list | tuple) else type(messages).__name__
        raise RequestError(f"messages: expected a list of 1 to {MAX_MESSAGES}, found {found}")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            raise RequestError(f"message {index}: expected an object with role and content", index=index)
        if message["role"] not in ROLES:
            shown = repr(message["role"])[:64]
            raise RequestError(f"message {index}: role is {shown}; known are {', '.join(ROLES)}", index=index)
        if not isinstance(message["content"], str):
            found = type(message["content"]).__name__
            raise RequestError(f"message {index}: content is a {found}, expected a string", index=index)


def _raise_exception(message: str) -> None:
    raise JinjaError(message)


def _strftime_now(pattern: str) -> str:
    if len(pattern) > 256:
        raise ValueError(f"strftime_now: the pattern has {len(pattern)} characters; at most 256 are allowed")
    return datetime.now().strftime(pattern)


def _reason(error: Exception) -> str:
    return str(error)[:1000] or type(error).__name__
