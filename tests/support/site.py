"""The product's own server on a free port, for tests and for the driver."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from serving import server
from serving.headers import security_headers, unisolated_headers

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serve(models: Sequence[Path] = (), *, isolated: bool = True) -> Iterator[str]:
    """Give the server's address, with its slash at the end.

    Args:
        models: model files to serve below ``models/``.
        isolated: False leaves out COOP and COEP, as a static host would.
    """
    with server.start(ROOT, models=models, headers=security_headers if isolated else unisolated_headers) as site:
        yield site.url
