"""Offline tasks: real data sets that come with installed packages."""
