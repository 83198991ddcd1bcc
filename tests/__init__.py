"""Tests; a package of its own, so that tests/trainers and tests/benchmarks do not hide the packages they test."""
