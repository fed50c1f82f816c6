"""The settings of a request: their names, bounds and how their text is read. Imports on CPython for tests."""

# name -> (type, smallest, largest, text at first). Greedy at first: the same question gets the same answer. An empty
# seed means a new one for each answer.
FIELDS = {
    "max_tokens": (int, 1, 1_000_000, "512"),
    "temperature": (float, 0, 5, "0"),
    "top_k": (int, 0, 1_000_000, "0"),
    "top_p": (float, 0, 1, "0.9"),
    "min_p": (float, 0, 1, "0"),
    "seed": (int, 0, 4_294_967_295, ""),
}
_MAY_BE_EMPTY = ("seed",)
# What happens when the context is full, the first unless something else is chosen.
OVERFLOWS = ("stop", "drop_oldest")
# How a load may be made: URL parameter -> whether it is a number.
_LOAD = {"context_length": True, "pool_positions": True, "kv_format": False}
_TRUE = ("1", "true", "on", "yes")


def initial(parameters):
    """Return {name: text} for the form, from the URL's parameters; bad text is kept, so that the form shows it."""
    return {name: parameters.get(name, rule[3]) for name, rule in FIELDS.items()}


def is_on(text):
    """Return whether the text of a switch means yes."""
    return (text or "").lower() in _TRUE


def overflow(text):
    """Return one of OVERFLOWS."""
    return text if text in OVERFLOWS else OVERFLOWS[0]


def load_fields(parameters):
    """Return what the URL's parameters say about a load, as fields of its message."""
    fields = {}
    for name, is_number in _LOAD.items():
        text = parameters.get(name, "")
        if text and not is_number:
            fields[name] = text
        elif text.isdigit():
            fields[name] = int(text)
    return fields


def request_fields(parameters):
    """Return what the URL's parameters alone say about a request, as fields of its message."""
    fields = {}
    n_logits = parameters.get("top_logits", "")
    if n_logits.isdigit():
        fields["top_logits"] = int(n_logits)
    if not is_on(parameters.get("reuse", "on")):
        fields["reuse"] = False
    return fields


def parse(texts):
    """Read the form.

    Returns:
        (params, problems): {name: number} of the good fields, {name: key of a sentence} of the bad ones.
    """
    params = {}
    problems = {}
    for name in FIELDS:
        value, problem = parse_field(name, texts.get(name, ""))
        if problem:
            problems[name] = problem
        elif value is not None:
            params[name] = value
    return params, problems


def parse_field(name, text):
    """Return (number or None, key of a sentence or None)."""
    kind, smallest, largest, _ = FIELDS[name]
    text = text.strip()
    if not text:
        return None, None if name in _MAY_BE_EMPTY else "problem.empty"
    try:
        # int() and float() would also take "1_000", "inf" and other things that nobody means here.
        if not all(character in "0123456789.-+eE" for character in text):
            raise ValueError
        value = kind(text)
    except ValueError:
        return None, "problem.integer" if kind is int else "problem.number"
    if not smallest <= value <= largest:
        return None, "problem.range"
    return value, None
