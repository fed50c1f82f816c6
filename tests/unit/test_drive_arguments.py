"""The driver's command line becomes the page's URL parameters."""

import json

import pytest

from tests.drive.arguments import parse


@pytest.fixture
def messages_file(tmp_path):
    def write(messages):
        path = tmp_path / "messages.json"
        path.write_text(json.dumps(messages), encoding="utf-8")
        return str(path)

    return write


def message(role, content):
    return {"role": role, "content": content}


def test_what_is_not_given_is_left_to_the_page():
    job = parse(["--prompt", "Hello"])
    assert (job.prompt, job.settings, job.n_answers, job.timeout_ms) == ("Hello", {}, 1, 300_000)


def test_settings_keep_their_types():
    line = "--prompt x --max-tokens 5 --temperature 0 --top-p 0.5 --top-k 3 --min-p 0.1 --seed 9 --top-logits 4 --raw"
    assert parse(line.split()).settings == {
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 3,
        "min_p": 0.1,
        "seed": 9,
        "top_logits": 4,
        "raw": 1,
    }


def test_continue_is_asked_for():
    assert not parse(["--prompt", "x"]).continues_after
    job = parse(["--prompt", "x", "--stop-after", "7", "--then-continue"])
    assert (job.stop_after, job.continues_after) == (7, True)


def test_browser_flags_may_be_repeated():
    assert parse(["--prompt", "x", "--chromium-flag=--a", "--chromium-flag=--b=1"]).chromium_flags == (
        "--a",
        "--b=1",
    )


def test_messages_travel_whole_and_the_last_is_the_prompt(messages_file):
    messages = [message("system", "Be brief."), message("user", "Hello")]
    job = parse(["--messages", messages_file(messages)])
    assert (job.settings["messages"], job.prompt) == (messages, "Hello")


@pytest.mark.parametrize(
    "messages",
    [[], {}, 7, [{}], [7], [message("user", 7)], [message("assistant", "Hi")], [{"role": "user"}]],
    ids=repr,
)
def test_messages_that_are_none_are_refused(messages_file, messages, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(["--messages", messages_file(messages)])
    assert stopped.value.code == 2
    assert "--messages" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["", "--prompt x --messages y", "--prompt x --model no/such/file", "--prompt x --max-tokens many"],
)
def test_a_line_without_sense_is_refused(line, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(line.split())
    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_history_cannot_be_asked_again_after_a_reset(messages_file, capsys):
    file = messages_file([message("user", "a"), message("assistant", "b"), message("user", "c")])
    with pytest.raises(SystemExit):
        parse(["--messages", file, "--then-reset", "--repeat", "2"])
    assert "--then-reset" in capsys.readouterr().err
    assert parse(["--messages", file, "--then-reset"]).resets_after
