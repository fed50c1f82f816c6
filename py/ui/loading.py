"""How a model and its engine come and go: one function for each wish. All of them take the page."""

from ui import settings

DEFAULT_MODEL = "static/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def load(page, source):
    """Load a model from a URL or a File, in place of the one that is loaded."""
    if page.model:
        page.client.unload()
    page.source = page.pending_source = source
    page.model = {}
    page.self_test = page.kernels = {}
    page.memory.pool = None
    page.end = ""
    for chat in page.chats:
        chat.answered = None
        chat.numbers = {}
        chat.end = ""
    page.quieten()
    fields = settings.load_fields(page.parameters)
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


def recover(page):
    """Get a model back, the way that the state offers."""
    if page.recovery == "load_default":
        load(page, DEFAULT_MODEL)
    elif page.recovery == "load_again":
        load(page, page.source)
    elif page.recovery == "restart":
        start(page)


def start(page):
    """Start an engine, in place of one that runs, and load the last model, or the one that the URL names."""
    page.chats.forget_closing()
    closing = page.client.start(page.chats.numbers)
    if closing is not None:
        page.chats.await_closed(closing)
    page.pulse.forgive()
    page.adapter = page.model = {}
    page.enter("starting")
    source = page.source or page.parameters.get("model", DEFAULT_MODEL)
    if source:
        load(page, source)
