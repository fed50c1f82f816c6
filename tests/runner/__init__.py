"""The test command: everything from a bare Python to pytest's summary line; standard library only."""
