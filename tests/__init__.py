"""`python3 -m tests` runs all tests; `python3 -m tests drive` uses the page from the command line."""
