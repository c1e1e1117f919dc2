"""Delivery: what a session is handed after a compaction, and when."""
