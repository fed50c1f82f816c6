"""Clutch: a large language model in a browser tab, on the user's own GPU, that can be driven."""
