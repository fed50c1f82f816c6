"""Where saved sessions are kept: by name, as bytes. Implemented by `browser/` and by the tests."""

from collections.abc import Sequence
from typing import Protocol

from clutch.errors import RequestError

MOST_NAME_CHARS = 80


class SessionStore(Protocol):
    """Files of saved sessions. A name has 1 to `MOST_NAME_CHARS` characters; `check_name` refuses others."""

    async def list(self) -> Sequence[tuple[str, int]]:
        """Return (name, size in bytes) of all that are kept, oldest first.

        Raises:
            SavedSessionError: the browser does not let us; `cause` is "storage".
        """

    async def write(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in place of what was there; what was there stays when that fails.

        Raises:
            RequestError: the name is none.
            SavedSessionError: there is no room (`cause` "quota"), or the browser does not let us ("storage").
        """

    async def read(self, name: str) -> bytes:
        """Return what is kept under `name`.

        Raises:
            RequestError: the name is none.
            SavedSessionError: there is nothing (`cause` "missing"), or the browser does not let us ("storage").
        """

    async def delete(self, name: str) -> None:
        """Throw away what is kept under `name`.

        Raises:
            RequestError, SavedSessionError: as `read`.
        """


def check_name(name: str) -> None:
    """Check that a session can be saved under `name`.

    Raises:
        RequestError: it is empty, too long, or no Unicode text.
    """
    is_text = not any("\ud800" <= character <= "\udfff" for character in name)
    if not 1 <= len(name) <= MOST_NAME_CHARS or not is_text:
        raise RequestError(
            f"The name of a saved session has {len(name)} characters; it must have 1 to {MOST_NAME_CHARS}, all whole.",
            hint="Choose another name.",
            field="name",
            length=len(name),
            limit=MOST_NAME_CHARS,
        )
