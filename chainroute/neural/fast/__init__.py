"""The network at speed: its weights multiplied out, its gradient by hand, its operations as kernels."""
