"""Every WGSL file against NumPy, on the lane's adapter."""
