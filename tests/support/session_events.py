"""Two questions, and what an engine said about them in one of its sessions."""

QUESTION = [{"role": "user", "content": "Hello"}]
OTHER = [{"role": "user", "content": "the cat and the hat"}]


def of_session(events, session, kind=None):
    found = [event for event in events if event.get("session") == session]
    return [event for event in found if event["kind"] == kind] if kind else found


def ids(events, session):
    """Return the ids of the last answer of a session."""
    return of_session(events, session, "finished")[-1]["output_ids"]
