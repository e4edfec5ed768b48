"""A rule pack for tests; it is installed where a test asks for it."""
