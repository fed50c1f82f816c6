"""The store of the choice of kernels as one value; a test may spoil it."""


class FakeChoiceStore:
    """Implements `clutch.model.choices.ChoiceStore`.

    Args:
        is_missing: the browser keeps nothing.
    """

    def __init__(self, *, is_missing=False):
        self.data = b""
        self.is_missing = is_missing

    async def read(self):
        return self.data

    async def write(self, data):
        if not self.is_missing:
            self.data = data
