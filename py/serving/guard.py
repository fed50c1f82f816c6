"""Who may ask: the page itself and a person who opens it, not another site and not a rebound name.

The Host header stops DNS rebinding: a foreign page can point its own name at 127.0.0.1, but cannot make the
browser send another Host. Fetch metadata stops other origins, those on other local ports included, from
loading parts of this one.
"""

import ipaddress
from http import HTTPStatus

from serving.request import HttpError, Request

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORT = 80


def is_loopback(host: str) -> bool:
    """Say whether `host`, as given to --host, is reachable from this machine only."""
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


class Guard:
    """The rules for one listening address."""

    def __init__(self, host: str, port: int) -> None:
        self._port = port
        self._names = {*_LOOPBACK_NAMES, f"[{host}]" if ":" in host else host}
        address = _address(host)
        self._takes_any_address = address is not None and address.is_unspecified

    def check(self, request: Request) -> None:
        """Let the request pass.

        Raises:
            HttpError: 421 a Host that is not ours, 403 asked for by another origin.
        """
        if not self._is_ours(request.fields["host"].lower()):
            raise HttpError(HTTPStatus.MISDIRECTED_REQUEST, "This server does not answer for that host.")
        site = request.fields.get("sec-fetch-site", "none")
        is_visit = (
            request.fields.get("sec-fetch-mode") == "navigate" and request.fields.get("sec-fetch-dest") == "document"
        )
        if site not in {"none", "same-origin"} and not is_visit:
            raise HttpError(HTTPStatus.FORBIDDEN, "Other sites may not load parts of this one.")

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host, str(_DEFAULT_PORT)
        if port != str(self._port):
            return False
        # An IP address cannot be rebound, so a server on all interfaces may answer to any.
        return name in self._names or (self._takes_any_address and _address(name.strip("[]")) is not None)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
