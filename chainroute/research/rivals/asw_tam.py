"""ASW-TAM (Xin et al., "Step-wise deep learning models for solving routing problems", 2020) as the paper has
it: every trajectory re-embeds the nodes for itself, from its own context. It takes as many times the memory
and work of TSNR as there are trajectories.
"""

from chainroute.neural.policy.reembed import TSNR


class OwnTSNR(TSNR):
    shared = False
