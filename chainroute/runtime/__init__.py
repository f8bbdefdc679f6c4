"""What every run needs of the machine: cores, device, progress and interruption, the code's revision."""
