"""The operating system around a daemon: logs, signals, service manager."""
