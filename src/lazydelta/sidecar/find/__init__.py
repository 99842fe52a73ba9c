"""Which sidecar serves a scan: discovery in tiers, and the proof that it belongs to the log."""
