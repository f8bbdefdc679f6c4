"""What the network is told, column by column: declared once for encoder, context, folding and kernels."""

from __future__ import annotations

from chainroute.problem.variants import FLAGS

# Of a node: its place, and fields of ProblemBatch by their names. From "opening" on they are times.
FEATURES = ("x", "y", "delivery", "pickup", "opening", "closing", "service")
TIMES = FEATURES.index("opening")
CLOSING = FEATURES.index("closing")

# Of a trajectory: remaining capacity, remaining distance, distance travelled in all, current time.
OWN = ("room", "remaining", "travelled", "time")

# Of a trajectory's situation, by the constraint they speak of: features of the current node, and its own.
ATTRIBUTES = {
    "B": ("delivery", "pickup", "room"),
    "L": ("x", "y", "remaining"),
    "O": ("x", "y", "travelled"),
    "TW": ("opening", "closing", "service", "time"),
}
GROUPS = tuple(len(ATTRIBUTES[flag]) for flag in FLAGS)  # how many attributes each constraint has
NAMES = tuple(name for flag in FLAGS for name in ATTRIBUTES[flag])  # of the 13 attributes

# What "wide" features add: of an instance, beside its flags, and of a trajectory, beside its attributes.
OF_INSTANCE = ("size", "pace", "reach", "vehicles")
OF_TRAJECTORY = ("vehicles", "served")
