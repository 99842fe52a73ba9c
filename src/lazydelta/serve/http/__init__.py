"""HTTP: health, metrics, files, and what the protocols over it share."""
