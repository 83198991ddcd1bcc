"""MLE-bench's competitions (Chan et al. 2024, arXiv 2410.07095) as tasks."""
