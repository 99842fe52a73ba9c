"""Delta's vocabulary, pure: actions, log file names, keys, schema JSON, features, statistics rules."""
