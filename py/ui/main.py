"""The page's composition root: builds strings, page and engine client, connects them, starts the engine."""

import js
from pyscript import document, ffi

from clutch.errors import ClutchError
from ui import chat_intents, engine_events, intents, liveness, loading, url
from ui.conversation import opening
from ui.engine_client import EngineClient
from ui.language import LanguageSwitch, open_strings
from ui.page import Page, now_ms


def main():
    """Bring the page to life."""
    parameters = url.parameters()
    strings = open_strings(parameters.get("lang"))
    page = Page(strings, parameters, on_generate=lambda: intents.generate(page))
    page.client = EngineClient(on_event=lambda event, text: receive(page, event, text))
    LanguageSwitch(strings, on_change=page.retranslate)
    intents.connect(page)
    chat_intents.connect(page)
    page.benchmark.connect(page, now_ms)
    liveness.connect(page)
    loading.start(page)
    open_conversation(page)
    page.prompt.focus()


def receive(page, event, text):
    """Show one event of the engine, then pass its JSON text on to whoever listens for "clutch"."""
    page.pulse.hear()
    if event is not None:
        engine_events.handle(page, event)
    document.dispatchEvent(js.CustomEvent.new("clutch", ffi.to_js({"detail": text})))


def open_conversation(page):
    """Show the conversation that the URL brings along."""
    if "messages" not in page.parameters:
        return
    try:
        messages, prompt = opening(page.parameters["messages"])
    except ClutchError as error:
        page.error = error.to_wire()
        page.render()
        return
    for message in messages:
        page.say(page.chat, message)
    page.prompt.write(prompt)
    page.render()


main()
