"""The headers of every response, errors included: isolated from other origins, no foreign content.

Workers take the policy of their own script's response, so files under /worker/ get a narrower one than the
page: the page's MicroPython needs `unsafe-eval` (PyScript calls `Function`), the engine's Pyodide only
WebAssembly.
"""

from collections.abc import Callable, Mapping

HeaderPolicy = Callable[[str], Mapping[str, str]]
"""From a decoded URL path (beginning with "/") to the headers that its response carries."""

ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PRIVACY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=(), serial=()",
}
PAGE_CSP = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'"
)
WORKER_CSP = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"


def security_headers(path: str) -> dict[str, str]:
    """Return the headers for a URL path; the default `HeaderPolicy`."""
    csp = WORKER_CSP if path.startswith("/worker/") else PAGE_CSP
    return {**ISOLATION, **_PRIVACY, "Content-Security-Policy": csp}


def unisolated_headers(path: str) -> dict[str, str]:
    """Return the headers of a host that cannot isolate: the page must then work without SharedArrayBuffer."""
    return {name: value for name, value in security_headers(path).items() if name not in ISOLATION}
