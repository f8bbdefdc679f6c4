"""What every run needs of the machine: cores, device, worker processes, progress, signals, the revision."""
