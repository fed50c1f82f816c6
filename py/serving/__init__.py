"""The development and release server: fetch pinned parts, serve the page on loopback, write a static site."""
