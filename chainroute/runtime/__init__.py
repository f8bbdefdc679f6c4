"""What every run needs of the machine: cores, device, progress, signals, the code's revision."""
