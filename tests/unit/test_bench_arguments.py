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


def test_speed_is_tried_quickly_on_the_software_adapter_and_measured_whole_on_a_real_one():
    job = parse(["speed"])
    assert (job.prompt_tokens, job.n_samples, job.context_length, job.n_loads) == ((16, 64), 1, None, 0)
    job = parse(["speed", "--real-gpu"])
    assert (job.prompt_tokens, job.n_samples, job.context_length, job.n_loads) == ((32, 512, 2000, 8000), 3, 8192, 2)
    assert job.prompt_tokens[-1] + job.n_answer_tokens <= job.context_length
    line = "speed --real-gpu --prompt-tokens 8,9 --loads 0 --context-length 64 --bandwidth 900"
    job = parse(line.split())
    assert (job.prompt_tokens, job.n_loads, job.context_length, job.bandwidth_gb_per_s) == ((8, 9), 0, 64, 900)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "BENCH"),
        ("haste", "haste"),
        ("speed --prompt-tokens 32,x", "--prompt-tokens"),
        ("speed --prompt-tokens 0", "--prompt-tokens"),
        ("speed --loads -1", "--loads"),
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
