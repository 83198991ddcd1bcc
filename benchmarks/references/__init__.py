"""Reference solutions of the offline tasks, of rising strength: where the medal thresholds come from."""
