"""How a model and its engine come and go: one function for each wish. All of them take the page."""

from ui import controls

DEFAULT_MODEL = "static/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def load(page, source):
    """Load a model from a URL or a File, in place of the one that is loaded."""
    if page.state == "ready":
        page.client.unload()
    page.source = page.pending_source = source
    page.answered = None
    page.model = {}
    page.self_test = {}
    page.numbers = {}
    page.end = ""
    page.errors.clear()
    page.notices.clear()
    fields = _chosen(page.parameters)
    if isinstance(source, str):
        page.client.load(source, **fields)
    else:
        page.client.load_file(source, **fields)
    page.enter("starting" if page.state == "starting" else "loading")


def shrink(page, error):
    """After an out-of-memory error, let the next load try the context length that would fit."""
    fits = error["data"].get("context_length_that_fits", 0)
    if error["code"] == "E400" and fits:
        page.parameters["context_length"] = str(fits)
        page.end = "too_large"


def _chosen(parameters):
    """Return what the URL says about a load."""
    text = parameters.get("context_length", "")
    return {"context_length": int(text)} if text.isdigit() else {}


def recover(page):
    """Get a model back, the way that the state offers."""
    recovery = controls.recovery(page.state, page.end)
    if recovery == "load_default":
        load(page, DEFAULT_MODEL)
    elif recovery == "load_again":
        load(page, page.source)
    elif recovery == "restart":
        start(page)


def start(page):
    """Start an engine, in place of one that runs, and load the last model, or the one that the URL names."""
    page.client.start()
    page.pulse.forgive()
    page.adapter = {}
    page.enter("starting")
    source = page.source or page.parameters.get("model", DEFAULT_MODEL)
    if source:
        load(page, source)
