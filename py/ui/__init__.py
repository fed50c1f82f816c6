"""The page's Python (MicroPython). Knows the DOM, knows no WebGPU and no model."""
