"""The network, from the decision process to training. PyTorch is imported here and in research/ alone.

env/       the decision process in tensors: batch, state, mask, step
policy/    the network, file by file as in the paper
fast/      the network at speed: folded weights, gradients by hand, kernels beside their legible twins
decode/    trajectories from a policy, and the best plan of their routes
assembly/  from trajectories to plans, in NumPy alone
train/     objective, loop, snapshots
device.py  the device and how it multiplies
"""
