"""Putting our hooks into a client's settings and taking them out again."""
