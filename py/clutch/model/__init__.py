"""The model: its shape, its weights, its forward pass as a list of dispatches."""
