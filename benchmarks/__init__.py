"""The ``benchmarks`` package."""
