"""The benchmark's command line, and how its defaults follow the adapter."""

import pytest

from tests.bench.arguments import PHASES, parse


def test_the_software_adapter_takes_fewer_samples_of_a_shorter_prompt():
    job = parse(["lifecycle"])
    assert (job.n_samples, job.n_prompt_tokens, job.phases, job.wants_real_gpu) == (10, 200, PHASES, False)


def test_a_real_gpu_takes_what_the_issue_asks_for():
    job = parse(["lifecycle", "--real-gpu"])
    assert (job.n_samples, job.n_prompt_tokens) == (200, 2000)


def test_what_is_given_wins():
    line = "lifecycle --real-gpu --samples 3 --prompt-tokens 50 --phase prefill --phase prefill --seed 7 --json"
    job = parse([*line.split(), "--chromium-flag=--a", "--chromium-flag=--b", "--chromium", "x"])
    assert (job.n_samples, job.n_prompt_tokens, job.phases, job.seed) == (3, 50, ("prefill",), 7)
    assert (job.chromium_flags, job.chromium, job.prints_json) == (("--a", "--b"), "x", True)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "BENCH"),
        ("speed", "speed"),
        ("lifecycle --samples 0", "--samples"),
        ("lifecycle --prompt-tokens -1", "--prompt-tokens"),
        ("lifecycle --phase sleep", "--phase"),
        ("lifecycle --model /nowhere.gguf", "/nowhere.gguf is not a file"),
    ],
)
def test_what_is_wrong_is_named(line, complaint, capsys):
    with pytest.raises(SystemExit):
        parse(line.split())
    assert complaint in capsys.readouterr().err
