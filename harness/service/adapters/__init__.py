"""Adapters for RL frameworks. Each module imports only its framework; none needs torch or the extra `serve`."""
