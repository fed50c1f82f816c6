"""Stories through the page, in Chromium with the software adapter."""
