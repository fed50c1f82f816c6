"""The driver: the page used from the command line, in a headless Chromium."""
