"""What can go wrong before the page is served; each error says what happened and what to do next.

ServingError
  ManifestError     static/parts.json is not what it should be
  FetchError        npm or pip could not bring a part (with the command's last lines)
  MismatchError     a part arrived, but its bytes are not the pinned ones
  AddressError      no port to listen on
  BuildError        the static site cannot be written there
"""


class ServingError(Exception):
    """The root: `message` says what happened, `hint` what to do about it."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}"


class ManifestError(ServingError):
    """The list of parts is broken or names a path that it must not."""


class FetchError(ServingError):
    """A part could not be fetched."""


class MismatchError(ServingError):
    """A part's bytes differ from the pinned ones; nothing of it was installed."""


class AddressError(ServingError):
    """No address to listen on."""


class BuildError(ServingError):
    """The static site cannot be written."""
