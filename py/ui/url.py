"""The URL's parameters: query string and fragment together, the fragment wins."""

import json

import js
from pyscript import window


def parameters():
    """Return {name: text}, well-formed and percent-decoded."""
    location = window.location
    merged = _pairs(location.search)
    merged.update(_pairs(location.hash[1:]))
    return merged


def _pairs(text):
    return json.loads(js.JSON.stringify(js.Object.fromEntries(js.URLSearchParams.new(text))))
