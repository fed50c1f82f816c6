"""The guards of the test command, tried on a small suite of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.lanes import lane_of
from tests.runner.roll_call import differences, merged, without_parameters

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
from pathlib import Path
from tests.runner import roll_call

roll_call.LIST = Path(__file__).with_name("tests.txt")

def pytest_configure(config):
    config.pluginmanager.register(roll_call.SkipGuard())
    config.pluginmanager.register(roll_call.RollCall(["unit"], may_update={may_update}))
"""
TEST_A = "tests/unit/test_a.py::test_a"
TEST_B = "tests/unit/test_a.py::test_b"
KERNEL = "tests/kernels/test_k.py::test_k"


@pytest.fixture
def suite(tmp_path):
    """Run a suite of one file and return exit code and output."""

    def run(source, listed, may_update=False):
        lane = tmp_path / "tests" / "unit"
        lane.mkdir(parents=True)
        (lane / "test_a.py").write_text(source, encoding="utf-8")
        (tmp_path / "conftest.py").write_text(CONFTEST.format(may_update=may_update), encoding="utf-8")
        (tmp_path / "tests.txt").write_text("".join(f"{name}\n" for name in listed), encoding="utf-8")
        (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/unit"]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return run


PASSING = "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n): pass\n"


def test_a_list_that_fits_passes(suite):
    code, output = suite(PASSING, [KERNEL, TEST_A])
    assert code == 0
    assert "2 passed" in output


def test_a_listed_test_that_did_not_run_fails(suite):
    code, output = suite(PASSING, [TEST_A, TEST_B])
    assert code == 1
    assert f"listed, but did not run: {TEST_B}" in output
    assert "1 failed, 2 passed" in output


def test_a_test_that_is_not_listed_fails(suite):
    code, output = suite(PASSING, [])
    assert code == 1
    assert f"ran, but is not listed: {TEST_A}" in output


def test_a_failing_test_has_run(suite):
    code, output = suite("def test_a(): assert 0\n", [TEST_A])
    assert code == 1
    assert "did not run" not in output


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_a(): pytest.skip('no time')\n",
        "import pytest\n@pytest.mark.skip('no time')\ndef test_a(): pass\n",
        "import pytest\npytest.skip('no time', allow_module_level=True)\n",
    ],
)
def test_a_skip_fails(suite, source):
    code, output = suite(source, [TEST_A])
    assert code != 0
    assert "A skip is a failure here. The reason given: Skipped: no time" in output


def test_the_list_is_written_on_request(suite, tmp_path):
    code, _ = suite(PASSING, [KERNEL, TEST_B], may_update=True)
    assert code == 0
    assert (tmp_path / "tests.txt").read_text(encoding="utf-8") == f"{KERNEL}\n{TEST_A}\n"


def test_differences_are_those_of_the_lanes_that_ran():
    assert differences([KERNEL, TEST_A], [TEST_A], ["unit"]) == []
    assert len(differences([KERNEL, TEST_A], [TEST_B], ["unit"])) == 2
    assert differences([KERNEL], [], ["kernels"]) == [f"listed, but did not run: {KERNEL}"]


def test_merging_keeps_the_other_lanes():
    assert merged([KERNEL, TEST_A], [TEST_B], ["unit"]) == [KERNEL, TEST_B]


def test_names_of_tests():
    assert without_parameters("tests/unit/test_a.py::test_a[x[1]]") == TEST_A
    assert lane_of(TEST_A) == "unit"
    assert lane_of("tests/tests.txt::roll_call") is None
    assert lane_of("elsewhere/unit/test_a.py::test_a") is None
