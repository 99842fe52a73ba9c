"""The pipeline on Spark: ingest, checkpoint with sidecar, maintenance."""
