"""Complete programs to start from; each is run by a test."""
