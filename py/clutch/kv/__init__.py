"""The KV cache: a pool of pages, and the block table that strings them together."""
