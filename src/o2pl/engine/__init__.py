"""The engine: what it is made of (`spec`), when it learns (`schedules`), and how it decides (`decider`)."""
