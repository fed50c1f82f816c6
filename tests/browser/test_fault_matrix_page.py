"""The fault matrix's last column, through the page: the worker dies in each phase, and the page replaces it."""

import pytest

from tests.support.fault_cells import DIE, acting
from tests.support.fault_matrix import CASES, name_of
from tests.support.page import ANSWER_TIMEOUT_MS
from tests.support.worker_bench import MAX_TOKENS, MODEL, FirstRules, tell

DYING = [(phase, cell.rule or phase.rule, name_of(phase, fault)) for phase, fault, cell in CASES if fault == "dies"]
QUESTION = "Count."
# A restart a minute is automatic; `peace` lets a minute pass.
_PEACE = """(() => {
    const now = performance.now.bind(performance);
    let offset = 0;
    performance.now = () => now() + offset;
    window.peace = () => { offset += 61_000; };
})()"""
_RESTARTED = """n => {
    const events = window.clutchRecorder.events.slice(n).map(([, text]) => JSON.parse(text));
    const crash = events.findIndex(event => event.code === "E700");
    return crash >= 0 && events.slice(crash).some(event => event.kind === "loaded")
        && document.body.dataset.state === "ready";
}"""


class MortalPage:
    """The page with the tiny model, and ways to let its worker die."""

    def __init__(self, page):
        self.page = page
        page.context.add_init_script(_PEACE)
        self.first_rules = FirstRules(page.context)
        self.open()
        self.golden = page.generate(QUESTION).output_ids

    def open(self, *rules):
        self.first_rules.set(*rules)
        self.page.open(MODEL, temperature=0, max_tokens=MAX_TOKENS, seed=1)

    def boot(self, rule):
        # As `open`, which returns once the restarted engine is ready.
        self.open(rule)
        self.n_events = 0

    def arm(self, rule):
        self.n_events = len(self.page.events())
        tell(self.page.page, "arm", rule=rule)

    def load(self, rule, model):
        self.arm(rule)
        self.page.page.set_input_files("#model-file", model)

    def generate(self, rule):
        self.arm(rule)
        self.page.start(QUESTION)

    def resume(self, rule):
        self.page.generate(QUESTION, stop_after=2)
        self.arm(rule)
        self.page.start_continue()

    def idle(self, rule):
        self.arm(rule)

    def reset(self, rule):
        self.arm(rule)
        self.page.page.click("#reset")

    def wait_restarted(self):
        self.page._wait(_RESTARTED, self.n_events, ANSWER_TIMEOUT_MS)


@pytest.fixture(scope="module")
def mortal(new_page):
    return MortalPage(new_page())


@pytest.mark.parametrize(("phase", "rule"), [case[:2] for case in DYING], ids=[name for _, _, name in DYING])
def test_the_page_replaces_a_worker_that_dies(mortal, tiny_model, allowed_faults, phase, rule):
    allowed_faults.append("the worker dies for a test")
    page = mortal.page
    page.page.evaluate("peace()")
    rule = acting(rule, (DIE,))
    if phase.rule["api"] == "fetch":
        mortal.boot(rule)
    elif phase.scene in ("load", "unload"):
        # A model that is chosen takes the place of the old one, which is unloaded first.
        mortal.load(rule, tiny_model)
    else:
        getattr(mortal, phase.scene)(rule)
    mortal.wait_restarted()
    errors = [error["code"] for _, error in page.events("error")[-1:]]
    assert errors == ["E700"]
    if phase.scene in ("generate", "resume"):
        # Kept: in the transcript, or given back where there was no answer yet.
        assert page.shown("user") == [QUESTION] or page.page.input_value("#prompt") == QUESTION
    page.reset()
    assert page.generate(QUESTION).output_ids == mortal.golden
    page.reset()
