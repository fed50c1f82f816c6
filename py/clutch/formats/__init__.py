"""Model file formats, read as hostile input."""
