"""Training: REINFORCE for the chain of contexts, resumable, on a CPU, a GPU or many."""

from chainroute.train.config import TrainConfig, read_recipe
from chainroute.train.loop import Report, train
from chainroute.train.validation import TaskCost, evaluate_tasks

__all__ = ["Report", "TaskCost", "TrainConfig", "evaluate_tasks", "read_recipe", "train"]
