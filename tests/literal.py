"""The paper's network a second time: slow, in float64, equation by equation, with loops over nodes,
trajectories and heads. The tests hold the fast network against it.

Vectors are rows of NumPy arrays; weights come by their names in the network. Where the paper is silent or its
authors run something else (a gated MLP, biases, norms, the sequential fusion of the encoder's branches), this
follows the authors, as the network's docstrings say. The paper writes one head; with several, each scales by
the root of its own dimension.
"""

import itertools
import math

import numpy as np
import torch

GROUPS = {"B": (0, 3), "L": (3, 6), "O": (6, 9), "TW": (9, 13)}  # which of the 13 attributes are whose


def drawn(module, seed=0):
    """The module in float64 with all weights drawn at random, so that no norm or bias hides at 1 or 0.

    They are small enough for logits that the clipping does not make all alike.
    """
    generator = torch.Generator().manual_seed(seed)
    module = module.double().eval()
    for p in module.parameters():
        noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        if p.dim() > 1:
            p.data = 0.5 * p.shape[-1] ** -0.5 * noise
        else:
            p.data = float(p.data.eq(1).all()) + 0.3 * noise  # norms around 1, biases around 0
    return module


def weights_of(module):
    return {name: value.detach().double().numpy() for name, value in module.state_dict().items()}


def under(weights, prefix):
    """The weights of one part, by their names inside it."""
    start = f"{prefix}."
    return {name[len(start) :]: value for name, value in weights.items() if name.startswith(start)}


# -- parts


def linear(weights, x):
    y = weights["weight"] @ x
    return y + weights["bias"] if "bias" in weights else y


def rms_norm(weights, x):
    return x / math.sqrt(sum(v * v for v in x) / len(x) + 1e-5) * weights["weight"]


def layer_norm(weights, x):
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return (x - mean) / math.sqrt(variance + 1e-5) * weights["weight"] + weights["bias"]


def silu(x):
    return x / (1 + np.exp(-x))


def gated_mlp(weights, x):
    w1, w2 = np.split(weights["w12.weight"], 2)
    return weights["w3.weight"] @ (silu(w1 @ x) * (w2 @ x))


def softmax(scores):
    """The softmax of a list; minus infinity means no share at all."""
    top = max(scores)
    shares = [math.exp(s - top) if s > -math.inf else 0.0 for s in scores]
    return [share / sum(shares) for share in shares]


def attend(queries, keys, values, heads, bias=None, keep=None):
    """What every query gathers; with `keep`, head by head only from its `keep` best keys."""
    size = queries.shape[1] // heads
    gathered = np.zeros_like(queries)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for i, query in enumerate(queries):
            scores = [float(query[part] @ key[part]) / math.sqrt(size) for key in keys]
            if bias is not None:
                scores = [score + bias[i][j] for j, score in enumerate(scores)]
            if keep is not None:
                best = sorted(range(len(scores)), key=lambda j: -scores[j])[:keep]
                scores = [score if j in best else -math.inf for j, score in enumerate(scores)]
            for share, value in zip(softmax(scores), values, strict=True):
                gathered[i, part] += share * value[part]
    return gathered


def nearness(distance):
    return -math.log(distance) if distance > 0 else 0.0


# -- the encoder


def transformer_layer(weights, nodes, heads, keep=None):
    """Pre-norm attention and gated MLP, each added to what went in."""
    q, k, v = [], [], []
    for node in nodes:
        for into, piece in zip(
            (q, k, v),
            np.split(linear(under(weights, "qkv"), rms_norm(under(weights, "norm1"), node)), 3),
            strict=True,
        ):
            into.append(piece)
    seen = attend(np.array(q), np.array(k), np.array(v), heads, keep=keep)
    out = []
    for node, gathered in zip(nodes, seen, strict=True):
        x = node + linear(under(weights, "out"), gathered)
        out.append(x + gated_mlp(under(weights, "mlp"), rms_norm(under(weights, "norm2"), x)))
    return np.array(out)


def encoder(weights, config, features, limit, flags, num_depots):
    """H_0 of one instance: features (n, 7), a number, flags (4,)."""
    nodes, joined = [], []
    prompt = linear(under(weights, "prompt"), flags) if config.prompt else None
    for i, f in enumerate(features):
        if i < num_depots:
            depot = [f[0], f[1], flags[2], limit] + ([f[5]] if config.depot_closing else [])
            nodes.append(linear(under(weights, "depot"), np.array(depot)))
        else:
            nodes.append(linear(under(weights, "customer"), f))
        if prompt is None:
            joined.append(nodes[-1])
            continue
        both = layer_norm(under(weights, "join.0"), np.concatenate([nodes[-1], prompt]))
        joined.append(linear(under(weights, "join.1"), both))
    h, s = np.array(joined), np.array(nodes)  # the global and the sparse branch
    keep = max((len(features) - 1) // 2, 1)
    for layer in range(config.layers):
        h = transformer_layer(under(weights, f"globals.{layer}"), h, config.heads)
        if config.sparse:
            s = transformer_layer(under(weights, f"sparses.{layer}"), s, config.heads, keep)
            before = h
            h = np.array(
                [a + linear(under(weights, f"to_global.{layer}"), b) for a, b in zip(h, s, strict=True)]
            )
            told = h if config.fusion == "sequential" else before
            s = np.array(
                [b + linear(under(weights, f"to_sparse.{layer}"), a) for a, b in zip(told, s, strict=True)]
            )
    return np.array([rms_norm(under(weights, "norm"), node) for node in h])


# -- RGCR


def rgcr(weights, config, attributes, here, flags, noise=None):
    """The context and the unified constraint embedding of one trajectory, from 13 numbers.

    `noise`, four numbers, disturbs gated scores; random scores are the standard normal's shares below it.
    """
    if config.scores == "attributes":
        unified = weights["attributes.weight"] @ attributes
    else:
        embeddings = [
            weights[f"embed.{k}.weight"] @ attributes[start:end]
            for k, (start, end) in enumerate(GROUPS.values())
        ]
        unified = weights["original.weight"] @ np.concatenate(embeddings)
        if config.scores != "embeddings":
            for k, embedding in enumerate(embeddings):
                disturbance = None if noise is None else noise[k]
                unified = unified + relevance(config, embedding, here, flags[k], disturbance) * embedding
    return weights["context.weight"] @ np.concatenate([unified, here]), unified


def relevance(config, embedding, here, flag, noise):
    product = float(here @ embedding)
    match config.scores:
        case "dot":
            return product
        case "cosine":
            lengths = math.sqrt(embedding @ embedding) * math.sqrt(here @ here)
            return product / max(lengths, 1e-8)
        case "random":
            return (1 + math.erf(noise / math.sqrt(2))) / 2
        case "gated":
            disturbed = product + config.score_noise * (noise or 0.0)
            return flag / (1 + math.exp(-disturbed / math.sqrt(config.dim)))


# -- TSNR


def distance_bias(config, distance):
    match config.distance_bias:
        case "log":
            return nearness(distance)
        case "raw":
            return distance
        case "off":
            return 0.0


def tsnr(weights, config, nodes, contexts, current, distance):
    """H_j and the contexts of one instance: nodes (n, D), contexts (S, D), where each trajectory is, (S,).

    A key at place p is as near to node m as p is on the way to m; contexts are not near to one another.
    """
    where = [*current, *range(len(nodes))]  # the place of every context and every node
    everyone = np.concatenate([contexts, nodes])
    count = len(contexts)
    queries = range(count, len(everyone)) if config.reembedding == "cross" else range(len(everyone))
    keys = range(len(everyone)) if config.node_attention else range(count)

    def bias(query, key):
        if query < count and key < count:
            return 0.0
        if query < count:  # how near a context is to a node does not depend on who asks
            query, key = key, query
        return distance_bias(config, distance[where[key], where[query]])

    q = [linear(under(weights, "q"), rms_norm(under(weights, "norm_q"), everyone[i])) for i in queries]
    k = [linear(under(weights, "k"), rms_norm(under(weights, "norm_k"), everyone[i])) for i in keys]
    v = [linear(under(weights, "v"), rms_norm(under(weights, "norm_v"), everyone[i])) for i in keys]
    biases = [[bias(i, j) for j in keys] for i in queries]
    seen = attend(np.array(q), np.array(k), np.array(v), config.heads, biases)
    refined = []
    for i, asked, gathered in zip(queries, q, seen, strict=True):
        h = (everyone[i] if config.residual == "nodes" else asked) + linear(under(weights, "out"), gathered)
        refined.append(h + gated_mlp(under(weights, "mlp"), rms_norm(under(weights, "norm"), h)))
    if config.reembedding == "cross":
        return np.array(refined), contexts
    return np.array(refined[count:]), np.array(refined[:count])


# -- the pointer


def pointer(weights, config, context, here, unified, nodes, distance, allowed):
    """The logits of one trajectory: distance (n,) from where it is, allowed (n,)."""
    query, identity = context, None
    if config.reld:
        identity = here + weights["identity.weight"] @ unified
    hidden = [[0.0 if ok else -math.inf for ok in allowed]]
    for depth in range(config.decoder_depth):
        part = under(weights, f"glimpses.{depth}")
        w_k, w_v = np.split(part["keys.weight"], 2)
        keys = np.array([w_k @ node for node in nodes])
        values = np.array([w_v @ node for node in nodes])
        seen = attend(query[None], keys, values, config.heads, hidden)[0]
        query = query + seen if config.glimpse_residual else seen
        if config.reld:
            query = identity + query
            query = query + gated_mlp(under(part, "mlp"), rms_norm(under(part, "norm"), query))
            identity = query
    query = weights["out.weight"] @ query
    logits = []
    for node, d, ok in zip(nodes, distance, allowed, strict=True):
        match = float(query @ (weights["logit_key.weight"] @ node)) / math.sqrt(config.dim)
        if config.logit_distance_bias:
            match += nearness(d)
        logits.append(config.clip * math.tanh(match) if ok else -math.inf)
    return np.array(logits)


# -- the whole policy, for one unpadded instance of a batch


class Instance:
    """Instance i of a batch as plain numbers."""

    def __init__(self, batch, i):
        def numbers(tensor):
            return tensor[i].double().numpy()

        self.num_depots = batch.num_depots
        self.coords, self.distance = numbers(batch.coords), numbers(batch.distance)
        self.delivery, self.pickup = numbers(batch.delivery), numbers(batch.pickup)
        self.opening, self.closing = numbers(batch.opening), numbers(batch.closing)
        self.service, self.counted_service = numbers(batch.service), numbers(batch.counted_service)
        self.duration = numbers(batch.duration)
        self.limit, self.open = float(batch.limit[i]), bool(batch.open[i])
        windows = any(math.isfinite(c) for c in self.closing) or any(o > 0 for o in self.opening)
        has = [bool(batch.backhaul[i]), math.isfinite(self.limit), self.open, windows]
        self.flags = np.array(has, dtype=float)
        self.pace = 4.6 / max([4.6, *(c for c in self.closing if math.isfinite(c))])  # days of training: 4.6
        longest = 2 * math.sqrt(2)  # limit of training
        self.reach = longest / max(longest, self.limit) if math.isfinite(self.limit) else 1.0

    def features(self):
        closing = [c if math.isfinite(c) else 0.0 for c in self.closing]
        columns = [self.coords[:, 0], self.coords[:, 1], self.delivery, self.pickup]
        clock = self.pace * np.column_stack([self.opening, closing, self.service])
        return np.column_stack([*columns, clock])

    def encode(self, weights, config):
        limit = self.reach * self.limit if math.isfinite(self.limit) else 0.0
        part = under(weights, "encoder")
        return encoder(part, config, self.features(), limit, self.flags, self.num_depots)

    def attributes(self, route, travelled):
        """The 13 numbers of a trajectory whose route under way visits these nodes, its depot first.

        `travelled` is the length of the finished routes, as the objective counts them.
        """
        time, length = self.opening[route[0]], 0.0
        delivered = picked_up = 0.0
        for a, b in itertools.pairwise(route):
            time = max(time + self.duration[a, b], self.opening[b]) + self.service[b]
            length += self.distance[a, b] + self.counted_service[b]
            travelled += self.distance[a, b]
            delivered += self.delivery[b]
            picked_up += self.pickup[b]
        here = route[-1]
        x, y = self.coords[here]
        left = 1 - (picked_up if picked_up > 0 else delivered)
        remaining = self.reach * (self.limit - length) if math.isfinite(self.limit) else 10.0
        closing = self.closing[here] if math.isfinite(self.closing[here]) else 0.0
        return np.array(
            [
                *(self.delivery[here], self.pickup[here], left),
                *(x, y, remaining),
                *(x, y, travelled),
                *(self.pace * moment for moment in (self.opening[here], closing, self.service[here], time)),
            ]
        )

    def step(self, weights, config, nodes, attributes, current, allowed, refine):
        """One step of the chain for all trajectories: their logits, and the nodes it leaves."""
        contexts, unified = [], []
        for numbers, place in zip(attributes, current, strict=True):
            c, s = rgcr(under(weights, "rgcr"), config, numbers, nodes[place], self.flags)
            contexts.append(c)
            unified.append(s)
        refined = nodes
        if refine and config.reembedding != "off":
            refined, contexts = tsnr(
                under(weights, "tsnr"), config, nodes, np.array(contexts), current, self.distance
            )
        logits = [
            pointer(under(weights, "pointer"), config, c, nodes[place], s, refined, self.distance[place], ok)
            for c, s, place, ok in zip(contexts, unified, current, allowed, strict=True)
        ]
        return np.array(logits), refined if config.chain else nodes
