# Everything is a plain Python command; this file only gives the usual ones short names (https://just.systems).

default: check test

# Static checks: ruff, mypy, import walls.
check:
    python3 -m tests static

# All lanes: unit, fault, kernels, browser.
test *arguments:
    python3 -m tests unit fault kernels browser {{arguments}}

unit *arguments:
    python3 -m tests unit {{arguments}}

kernels *arguments:
    python3 -m tests kernels {{arguments}}

browser *arguments:
    python3 -m tests browser {{arguments}}

# The page in your browser.
serve *arguments:
    python3 serve.py {{arguments}}

# The page from the command line: just drive --prompt "What is the capital of France?"
[positional-arguments]
drive *arguments:
    python3 -m tests drive "$@"

format:
    .venv/bin/ruff check --fix
    .venv/bin/ruff format
