"""What the benchmark asks: a short question, and a text of a wanted number of tokens."""

import random

QUESTION = "Write a short story about a robot."
# Each is one token behind a space, in SmolLM2's vocabulary and in the tiny model's.
_WORDS = ("the", "a", "of", "in", "and", "to")


def words(count: int, seed: int | str = 0) -> str:
    """Return a text of `count` words (at least 1), for each seed the same ones every time."""
    return " ".join(random.Random(seed).choices(_WORDS, k=count))


def words_for(n_tokens: int, n_words: int, n_tokens_of_words: int) -> int:
    """Return how many words make a prompt of `n_tokens`.

    Args:
        n_tokens: wanted, with everything that the chat template puts around the words.
        n_words, n_tokens_of_words: of a prompt that was measured.
    """
    return max(1, n_words + n_tokens - n_tokens_of_words)
