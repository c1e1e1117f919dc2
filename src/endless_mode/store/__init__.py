"""The store: a SQLite file that indexes transcripts and keeps what only we know."""

from endless_mode.store.store import Store, StoreBusy, StoreError, open_reader

__all__ = ["Store", "StoreBusy", "StoreError", "open_reader"]
