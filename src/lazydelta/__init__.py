"""Stream the live files of huge Delta Lake tables, newest first, in bounded memory."""
