"""The ladder and the peers: generated tables, and every reader measured on them."""
