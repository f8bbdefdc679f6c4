"""`train` and `evaluate`, which also run where little more than PyTorch is installed (`python -m`).

Each is a function whose parameters say what they are (`declare`). The command `chainroute` makes its verbs of
the same functions. What a command needs is imported inside it.
"""
