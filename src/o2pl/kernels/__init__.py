"""Fused versions of combinations of parts: accelerations, never a second engine.

`registry` says which there are; `values` registers them. Each equals the plain composition of the parts, by test.
"""
