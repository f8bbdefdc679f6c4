"""Training: REINFORCE for the chain of contexts, resumable, on a CPU, a GPU or many."""

from chainroute.neural.train.config import TrainConfig, read_recipe
from chainroute.neural.train.loop import Report, train
from chainroute.neural.train.validation import TaskCost, evaluate_tasks

__all__ = ["Report", "TaskCost", "TrainConfig", "evaluate_tasks", "read_recipe", "train"]
