"""What survives a compaction, measured on real transcripts by string presence, without a model."""
