"""The GPU as the engine sees it: a small protocol, a registry of kernels, a ledger; no browser."""
