"""The only package that may import js or pyodide."""
