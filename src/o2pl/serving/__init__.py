"""The decision service: API, store, trainer and dashboard."""
