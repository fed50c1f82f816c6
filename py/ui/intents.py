"""What the visitor wants of the conversation: one function for each click. All of them take the page."""

import js
from pyscript import document

from ui import controls, dom, loading, settings
from ui.conversation import Message
from ui.exchange import Exchange
from ui.page import now_ms


def generate(page):
    """Send the prompt; a typed error when this is not the moment."""
    if page.prompt.is_empty or _is_refused(page):
        return
    asked = page.settings.read()
    if asked is not None:
        _send(page, page.prompt.text, asked)


def _send(page, text, asked):
    chat = page.chat
    is_raw = page.settings.is_raw
    question = page.say(chat, Message("user", text, is_raw))
    # Without a seed the same question may get another answer; the engine itself never rolls dice.
    seed = int(js.Math.random() * (settings.FIELDS["seed"][2] + 1))
    fields = dict(settings.request_fields(page.parameters), params=dict({"seed": seed}, **asked))
    fields["overflow"] = page.settings.overflow
    if is_raw:
        fields["prompt"] = text
    else:
        fields["messages"] = chat.conversation.wire()
    request_id = page.client.generate(chat.number, **fields)
    answer = page.say(chat, Message("assistant", "", is_raw))
    page.transcript.set_writing(answer, True)
    page.prompt.write("")
    _begin(page, Exchange(request_id, question, answer, asked, now_ms()))


def continue_answer(page):
    """Go on with the last answer; a typed error when this is not the moment."""
    chat = page.chat
    if _is_refused(page) or not chat.can_continue:
        return
    asked = page.settings.read()
    if asked is None:
        return
    before = chat.answered
    changes = before.changes(asked)
    request_id = page.client.continue_answer(chat.number, **({"params": changes} if changes else {}))
    page.transcript.resume(before.answer)
    _begin(page, Exchange(request_id, before.question, before.answer, asked, now_ms(), before.n_tokens))


def _begin(page, exchange):
    page.chat.begin(exchange)
    page.quieten()
    page.prompt.focus()
    page.render()


def _is_refused(page):
    code = "E601" if page.benchmark.is_running else controls.refusal(page.chat.state)
    if code:
        page.refuse(code)
    return code is not None


def edit(page):
    """Take the last question back into the prompt box, and its answer away."""
    chat = page.chat
    if chat.edit_label is None:
        return
    chat.answered = None
    chat.end = ""
    page.take_back(chat)
    page.prompt.focus()
    page.render()


def stop(page):
    """Stop the answer or the load; what is there of an answer stays."""
    chat = page.chat
    is_enabled, _ = controls.buttons(chat.state, True)["stop"]
    if not is_enabled:
        return
    page.client.stop(chat.number)
    for other in page.chats if chat.state in controls.STOPPED_FOR_ALL else [chat]:
        other.enter("stopping")
    page.prompt.focus()
    page.render()


def reset(page):
    """Forget the conversation; a load goes on."""
    chat = page.chat
    state = controls.state_after_reset(chat.state, page.pending_source is not None)
    page.client.reset(chat.number, is_stopping=state == "resetting")
    chat.forget()
    page.transcript.clear()
    page.quieten()
    chat.enter(state)
    page.prompt.focus()
    page.render()


_BUTTONS = {
    "generate": generate,
    "continue": continue_answer,
    "edit": edit,
    "stop": stop,
    "reset": reset,
    "recover": loading.recover,
}


def connect(page):
    """Give every control its intent."""
    for name, intent in _BUTTONS.items():
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
        loading.load(page, file)


def _press(page, event):
    if controls.page_key(page.chat.state, event.key, event.isComposing) == "stop":
        stop(page)


def _take_example(page, button):
    page.prompt.write(button.textContent)
    page.prompt.focus()
    page.render()
