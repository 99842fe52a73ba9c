"""The log of one version: segment, commits newest first, checkpoints, protocol and metadata."""
