"""The first thing that anyone does."""


def test_it_knows_the_capital_of_france(default_page):
    answer = default_page.generate("What is the capital of France?")
    assert answer.text == answer.streamed_text == "The capital of France is Paris."
    assert (answer.finish_reason, answer.errors) == ("stop", [])


def test_the_second_turn_knows_the_first(default_page):
    default_page.reset()
    first = default_page.generate("What is the capital of France?")
    second = default_page.generate("And of Italy?")
    # The history is read from the cache, not computed again.
    assert second.num_cached_tokens >= len(first.prompt_ids)
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids
    assert second.kv_length == second.committed_tokens
    assert default_page.shown("user") == ["What is the capital of France?", "And of Italy?"]
