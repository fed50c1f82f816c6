"""The one error tree. Codes never change meaning; the README lists them.

    ClutchError                 E000   has .code .message .hint .data
      CapabilityError           E100   no WebGPU, no adapter, limit too small, feature missing
        SelfTestError           E101   this GPU computes wrong numbers
      ModelFormatError          E200   the file is not what it claims (offset, expected, found)
      UnsupportedModelError     E201   a valid file with an architecture, tokenizer or quantisation we do not run
      SourceError               E300   the model's bytes cannot be read (missing, network, shorter than promised)
      OutOfMemory               E400   which buffer, bytes asked, bytes allowed
      DeviceLost                E500   the GPU went away; recoverable
      DeviceTimeout             E501   the GPU did not answer before its deadline
      RequestError              E600   a bad parameter or message
        BusyError               E601   a request is already running
        NotReadyError           E602   no model is loaded
        ContextLengthError      E603   the prompt is longer than the context (both numbers)
        TemplateError           E604   the chat template rejected the messages
        PoolExhausted           E605   not enough free KV pages for this request
      WorkerCrashed             E700   made by the page, not by the worker
      InternalError             E900   our bug

A message says what happened and the numbers; the hint says what to do next. Over the wire an error is
``{code, message, hint, data}``, never a bare string. `assert` is for our own bugs, never for input.
"""


class ClutchError(Exception):
    """The root of the tree.

    Args:
        message: what happened, with the numbers.
        hint: what the reader can do next; one sentence, may be empty.
        data: JSON-able facts for programs (offsets, bytes, limits).
    """

    code = "E000"

    def __init__(self, message: str, *, hint: str = "", **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able form that crosses the worker boundary."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "data": self.data}


class CapabilityError(ClutchError):
    """This browser or GPU cannot run the engine."""

    code = "E100"


class SelfTestError(CapabilityError):
    """The GPU's numbers are not those that the file's weights give."""

    code = "E101"


class ModelFormatError(ClutchError):
    """The model file is not what it claims to be."""

    code = "E200"


class UnsupportedModelError(ClutchError):
    """The model file is valid, but Clutch cannot run what is in it."""

    code = "E201"


class SourceError(ClutchError):
    """The bytes of the model cannot be read."""

    code = "E300"


class OutOfMemory(ClutchError):
    """A buffer does not fit the GPU."""

    code = "E400"


class DeviceLost(ClutchError):
    """The GPU went away."""

    code = "E500"


class DeviceTimeout(ClutchError):
    """The GPU did not answer before its deadline."""

    code = "E501"


class RequestError(ClutchError):
    """A message or parameter is wrong."""

    code = "E600"


class BusyError(RequestError):
    """A request is already running."""

    code = "E601"


class NotReadyError(RequestError):
    """No model is loaded."""

    code = "E602"


class ContextLengthError(RequestError):
    """The prompt, or the context asked for, is longer than there is room."""

    code = "E603"


class TemplateError(RequestError):
    """The chat template rejected the messages."""

    code = "E604"


class PoolExhausted(RequestError):
    """The KV pool has too few free pages."""

    code = "E605"


class NoSuchSession(RequestError):
    """The session was never opened, or is closed."""

    code = "E606"


class TooManySessions(RequestError):
    """All places for sessions are taken, or this one is."""

    code = "E607"


class SavedSessionError(ClutchError):
    """A saved session is damaged, or belongs to another model."""

    code = "E608"


class WorkerCrashed(ClutchError):
    """The worker ended without saying why."""

    code = "E700"


class InternalError(ClutchError):
    """A bug of ours."""

    code = "E900"
