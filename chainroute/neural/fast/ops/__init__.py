"""The operations of the fast engine, each with its gradient by hand: `plain` in PyTorch, `fused` as kernels.

Operations of one kind share a file, and their kernels have the file beside it: `rows.py`, `rows_triton.py`.
The plain version, a kernel's twin, says what an operation does and what its arguments are; the kernel has the
same name and signature. Every operation writes into the tensors it is given last.
"""
