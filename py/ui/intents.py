"""What the visitor wants: one function for each thing that can be clicked. All of them take the page."""

import js
from pyscript import document

from ui import controls, dom, settings
from ui.conversation import Message
from ui.exchange import Exchange
from ui.page import now_ms

DEFAULT_MODEL = "static/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def generate(page):
    """Send the prompt; a typed error when this is not the moment."""
    if page.prompt.is_empty:
        return
    code = controls.refusal(page.state)
    if code:
        page.errors.show({"code": code, "message": "", "hint": ""})
        return
    params = page.settings.read()
    if params is None:
        return
    # Without a seed the same question may get another answer; the engine itself never rolls dice.
    params.setdefault("seed", int(js.Math.random() * (settings.FIELDS["seed"][2] + 1)))
    _send(page, page.prompt.text, params)


def _send(page, text, params):
    is_raw = page.settings.is_raw
    question = page.say(Message("user", text, is_raw))
    fields = {"params": params}
    if is_raw:
        fields["prompt"] = text
    else:
        fields["messages"] = page.conversation.wire()
    n_logits = page.parameters.get("top_logits", "")
    if n_logits.isdigit():
        fields["top_logits"] = int(n_logits)
    request_id = page.client.generate(**fields)
    answer = page.say(Message("assistant", "", is_raw))
    page.transcript.set_writing(True)
    page.exchange = Exchange(request_id, question, answer, now_ms())
    page.prompt.write("")
    page.prompt.focus()
    page.errors.clear()
    page.set_numbers({})
    page.end = ""
    # At once, so that a second click finds the button off.
    page.enter("generating")


def stop(page):
    """Stop the answer; what is there stays."""
    if page.state != "generating":
        return
    page.client.stop()
    page.enter("stopping")
    page.prompt.focus()


def reset(page):
    """Forget the conversation."""
    page.client.reset()
    page.exchange = None
    page.conversation.clear()
    page.transcript.clear()
    page.errors.clear()
    page.set_numbers({})
    page.end = ""
    page.enter("resetting")
    page.prompt.focus()


def load(page, source):
    """Load a model from a URL or a File, in place of the one that is loaded."""
    if page.state in ("ready", "lost"):
        page.client.unload()
    page.source = page.pending_source = source
    page.model = {}
    page.numbers = {}
    page.end = ""
    page.errors.clear()
    if isinstance(source, str):
        page.client.load(source)
    else:
        page.client.load_file(source)
    page.enter("starting" if page.state == "starting" else "loading")


def recover(page):
    """Get a model back, the way that the state offers."""
    recovery = controls.recovery(page.state)
    if recovery == "load_default":
        load(page, DEFAULT_MODEL)
    elif recovery == "load_again":
        load(page, page.source)
    elif recovery == "restart":
        start(page)


def start(page):
    """Start an engine and load the last model, or the one that the URL names."""
    page.client.start()
    page.enter("starting")
    source = page.source or page.parameters.get("model", DEFAULT_MODEL)
    if source:
        load(page, source)


def connect(page):
    """Give every control its intent."""
    for name, intent in (("generate", generate), ("stop", stop), ("reset", reset), ("recover", recover)):
        dom.listen(dom.element(name), "click", lambda _event, intent=intent: intent(page))
    dom.listen(dom.element("model-file"), "change", lambda event: _choose_file(page, event.target))
    dom.listen(document, "keydown", lambda event: _press(page, event))
    for example in document.querySelectorAll(".example"):
        dom.listen(example, "click", lambda event: _take_example(page, event.currentTarget))


def _choose_file(page, picker):
    if picker.files.length:
        file = picker.files.item(0)
        # Emptied, so that choosing the same file again is a change again.
        picker.value = ""
        load(page, file)


def _press(page, event):
    if controls.page_key(page.state, event.key, event.isComposing) == "stop":
        stop(page)


def _take_example(page, button):
    page.prompt.write(button.textContent)
    page.prompt.focus()
    page.render()
