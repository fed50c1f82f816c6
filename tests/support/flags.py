"""The command-line flags of the browser, by the GPU that is wanted.

SwiftShader is Chromium's own software adapter: the same on every machine, without `shader-f16`.
"""

import sys

SWIFTSHADER = "google/swiftshader"
NO_GPU = "none"

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
# Without these Chromium on Linux takes SwiftShader in headless mode, whatever card there is.
_HARDWARE_ON_LINUX = ("--enable-features=Vulkan", "--use-angle=vulkan", "--disable-vulkan-surface")


def flags_for(adapter: str) -> list[str]:
    """Return all flags for `adapter`.

    Args:
        adapter: SWIFTSHADER, NO_GPU (`requestAdapter()` gives null), else the machine's own GPU.
    """
    if adapter == NO_GPU:
        return list(QUIET)
    if adapter == SWIFTSHADER:
        return [*QUIET, *_SOFTWARE]
    return [*QUIET, *(_HARDWARE_ON_LINUX if sys.platform == "linux" else ())]
