"""From a transcript on disk to rows: what is new since the cursor, in one transaction with the cursor."""

from endless_mode.ingest.ingest import IngestResult, ingest_file, ingest_session

__all__ = ["IngestResult", "ingest_file", "ingest_session"]
