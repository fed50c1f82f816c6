"""The KV cache: a pool of pages with an index of prefixes, block tables, and the sequences that they belong to."""
