"""Duration-aware asynchronous PPO: the reference trainer."""
