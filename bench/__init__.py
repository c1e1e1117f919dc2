"""Measurements that need no network and no model: speed of ingest and size of bottles."""
