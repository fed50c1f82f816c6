"""Every sentence the page says, in English and Chinese.

The tables are `static/strings/*.json`; pyscript.toml copies them beside this package. Imports on CPython for tests.
"""

import json

LANGUAGES = ("en", "zh")


def choose_language(parameter, stored, preferred):
    """Return "en" or "zh": the `lang` parameter, else the stored choice, else what the browser prefers."""
    for wish in (parameter, stored, preferred):
        code = (wish or "").lower()[:2]
        if code in LANGUAGES:
            return code
    return LANGUAGES[0]


class Strings:
    """The tables of all languages and the one in use.

    Args:
        tables: language -> {key: sentence}; a sentence may have named fields in braces.
        language: the language to start with.
    """

    def __init__(self, tables, language):
        self._tables = tables
        self.language = language

    def has(self, key):
        """Return whether the tables know `key`."""
        return key in self._tables[self.language]

    def text(self, key, **values):
        """Return the sentence of `key`; a key nobody wrote is shown as it is rather than hidden."""
        sentence = self._tables[self.language].get(key, key)
        return sentence.format(**values) if values else sentence


def load(folder, language):
    """Read the tables from `folder`."""
    tables = {}
    for code in LANGUAGES:
        with open(folder + "/" + code + ".json") as file:
            tables[code] = json.load(file)
    return Strings(tables, language)
