"""The paper's protocol around training: which tasks are feasible, and how a trained policy is judged."""
