"""Guards against a green that means nothing: what ran is compared with `tests/tests.txt`; a skip fails.

A line of the list is a test without its parameters. A listed test that did not run, or one that ran and is
not listed, adds a failed test of its own to the session, so that pytest's summary line tells of it.
"""

from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from tests.runner.lanes import lane_of

LIST = Path(__file__).resolve().parents[1] / "tests.txt"
# Reasons for which a test may be skipped.
NO_OPTIONAL_MODEL = "the optional model is not there (tests/browser/test_golden_qwen2.py says where from)"
ALLOWED_SKIPS = frozenset({NO_OPTIONAL_MODEL})


def without_parameters(node_id: str) -> str:
    """Return the node id of the function: ``a.py::test[x-1]`` becomes ``a.py::test``."""
    return node_id.split("[", 1)[0]


def differences(listed: Iterable[str], ran: Iterable[str], lanes: Iterable[str]) -> list[str]:
    """Return one line for each test of `lanes` that is listed or ran, but not both."""
    lanes = set(lanes)
    expected = {name for name in listed if lane_of(name) in lanes}
    found = set(ran)
    missing = [f"listed, but did not run: {name}" for name in sorted(expected - found)]
    return missing + [f"ran, but is not listed: {name}" for name in sorted(found - expected)]


def merged(listed: Iterable[str], ran: Iterable[str], lanes: Iterable[str]) -> list[str]:
    """Return the new list: what ran, and the old lines of the other lanes."""
    lanes = set(lanes)
    return sorted({*ran, *(name for name in listed if lane_of(name) not in lanes)})


class SkipGuard:
    """Turns each skip whose reason is not allowed into a failure."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Watch single tests."""
        report = yield
        if not hasattr(report, "wasxfail"):
            _refuse_skip(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Watch whole modules."""
        report = yield
        _refuse_skip(report)
        return report


class RollCall:
    """Collects the tests that ran and compares them with the list when the session ends.

    Args:
        lanes: the lanes that run as a whole.
        may_update: write the list instead of comparing.
    """

    def __init__(self, lanes: Iterable[str], may_update: bool) -> None:
        self.lanes = frozenset(lanes)
        self.may_update = may_update
        self.ran: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that came to its end, whose fixtures failed, or that was skipped for an allowed reason."""
        if report.when == "call" or report.failed or report.skipped:
            self.ran.add(without_parameters(report.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare or write the list; an interrupted session does neither."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        listed = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
        if self.may_update:
            LIST.write_text("".join(f"{name}\n" for name in merged(listed, self.ran, self.lanes)), encoding="utf-8")
            return
        problems = differences(listed, self.ran, self.lanes)
        if problems:
            problems.append("If that is meant: python3 -m tests --update-list")
            session.config.hook.pytest_runtest_logreport(report=_failure("\n".join(problems)))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped:
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if reason.removeprefix("Skipped: ") not in ALLOWED_SKIPS:
        report.outcome = "failed"
        report.longrepr = f"A skip is a failure here. The reason given: {reason}"


def _failure(text: str) -> pytest.TestReport:
    node_id = "tests/tests.txt::roll_call"
    place = ("tests/tests.txt", None, "roll_call")
    return pytest.TestReport(node_id, place, {}, outcome="failed", longrepr=text, when="call")
