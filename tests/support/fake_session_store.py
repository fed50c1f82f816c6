"""The store of saved sessions as a dict; insertion is age."""

from clutch.engine.session_store import check_name
from clutch.errors import SavedSessionError


class FakeSessionStore:
    """Implements `clutch.engine.session_store.SessionStore`; `files` may be spoilt by a test.

    Args:
        quota_bytes: most bytes of all files together; None: no limit.
    """

    def __init__(self, quota_bytes=None):
        self.files = {}
        self.quota_bytes = quota_bytes

    async def list(self):
        return [(name, len(data)) for name, data in self.files.items()]

    async def write(self, name, data):
        check_name(name)
        others = sum(len(kept) for other, kept in self.files.items() if other != name)
        if self.quota_bytes is not None and others + len(data) > self.quota_bytes:
            raise SavedSessionError(f"{name!r} does not fit.", cause="quota", name=name, asked_bytes=len(data))
        self.files.pop(name, None)
        self.files[name] = bytes(data)

    async def read(self, name):
        self._check(name)
        return self.files[name]

    async def delete(self, name):
        self._check(name)
        del self.files[name]

    def _check(self, name):
        check_name(name)
        if name not in self.files:
            raise SavedSessionError(f"There is no saved session {name!r}.", cause="missing", name=name)
