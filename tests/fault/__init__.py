"""The whole engine on CPython, on a device that fails when it is told to."""
