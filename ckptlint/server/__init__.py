"""The language server. Whoever imports ``language_server`` needs the extra ``server``; nothing else does."""
