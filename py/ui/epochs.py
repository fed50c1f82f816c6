"""Which events come too late. Imports on CPython for tests."""


def is_past(event, epochs, load_id):
    """Return whether an event belongs to what its session was before a Reset.

    Args:
        event: of the engine.
        epochs: the present one of each session.
        load_id: the number of the last load; it belongs to no epoch.
    """
    session = event.get("session")
    # The GPU is gone for every epoch.
    if session is None or event.get("epoch", epochs[session]) >= epochs[session] or event.get("state") == "lost":
        return False
    number = event.get("request_id")
    return number != load_id and (event["kind"] not in ("error", "notice") or number is not None)
