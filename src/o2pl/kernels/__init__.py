"""Fused versions of combinations of parts: accelerations, never a second engine.

`registry` lists them; `values` registers them. Tests check that each equals the plain composition of the parts.
"""
