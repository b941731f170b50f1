"""The subgraphs of the GPU table in PyTorch: as a peer that is timed, and in double on sampled rows as the reference."""
import contextlib
import os
import re

import numpy
import torch

import gpu_made

F = torch.nn.functional
SAMPLES = 64
ATTENTION_BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION")


def scaled(q, k):
    return (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5


def attention(t, causal):
    scores = scaled(t["q"], t["k"])
    if causal:
        later = torch.ones(scores.shape[-2:], device=scores.device, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return (scores.softmax(-1) @ t["v"],)


def lstm(t):
    """Gates in the order of the graph's: input, forget, update, output."""
    flat = {name: t[name].reshape(4 * 1024, -1) for name in ("wx", "wh")}
    bias = t["bias"].reshape(-1)
    return torch.lstm_cell(t["x"], (t["h"], t["c"]), flat["wx"], flat["wh"], bias, torch.zeros_like(bias))


def stack(t):
    x = t["x0"]
    for i in range(sum(name.startswith("w") for name in t)):
        x = F.relu(F.linear(x, t[f"w{i}"]))
    return (x,)


def swiglu(t):
    return (F.linear(F.silu(F.linear(t["x"], t["wg"])) * F.linear(t["x"], t["wu"]), t["wd"]),)


def cross_entropy(t):
    return (F.cross_entropy(t["logits"], t["target"].reshape(-1).long(), reduction="none"),)


def decode(t):
    return ((scaled(t["q"].unsqueeze(2), t["k"]).softmax(-1) @ t["v"]).squeeze(2),)


# Graph: its outputs, in the order of the graph's text.
WORK = {
    "gemm": lambda t: (F.linear(t["x"], t["w"]),),
    "gemm_gelu": lambda t: (F.gelu(F.linear(t["x"], t["w"], t["bias"])),),
    "rms_gemm": lambda t: (F.linear(F.rms_norm(t["x"], (4096,), t["gamma"], 1e-6), t["w"]),),
    "gemv": lambda t: (F.linear(t["x"], t["w"]),),
    "swiglu": swiglu,
    "lstm": lstm,
    "mlp_stack": stack,
    "cross_entropy": cross_entropy,
    "softmax": lambda t: (torch.softmax(t["x"], 1),),
    "long_softmax": lambda t: (torch.softmax(t["x"], 1),),
    "layernorm": lambda t: (F.layer_norm(t["x"], t["gamma"].shape, t["gamma"], t["beta"], 1e-12),),
    "rmsnorm": lambda t: (F.rms_norm(t["x"], (4096,), t["gamma"], 1e-6),),
    "column_sum": lambda t: (t["x"].sum(0),),
    "decode_attention": decode,
}
for heads in ("h12_d64", "h16_d64", "h32_d128"):
    WORK[f"mha_{heads}"] = lambda t: attention(t, False)
    WORK[f"mha_{heads}_causal"] = lambda t: attention(t, True)

# What the rows of a graph are taken from; the rest is the same for all of them.
ROW_INPUTS = {"lstm": ("x", "h", "c"), "mlp_stack": ("x0",), "cross_entropy": ("logits", "target")}


def made(graph_text, dims, device):
    """The inputs and constants that smg makes up: floats in f32, inputs exact in 16 bits."""
    tensors = {}
    for name, (kind, word, shape, seed, scale) in gpu_made.leaves(graph_text, dims).items():
        count = 1
        for side in shape:
            count *= side
        numbers = torch.arange(1, count + 1, dtype=torch.int64, device=device)
        if kind == "constant":
            part = gpu_made.constant_words(seed, numbers).double() / 2.0**gpu_made.FLOAT_BITS - 1
            tensors[name] = (scale * part).float().reshape(shape)
        elif word == "i32":
            tensors[name] = gpu_made.input_integers(name, numbers, 2).int().reshape(shape)
        else:
            tensors[name] = (gpu_made.input_floats(name, numbers).float() / 1024 - 1).reshape(shape)
        del numbers
    return tensors


def typed(tensors, dtype):
    """Values as they are stored in that precision."""
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}


def peers(graph, tensors):
    """{name: (what makes the function, context)} in that precision; attention in 16 bits operation by operation, and by
    every backend of scaled_dot_product_attention."""
    half = all(t.dtype == torch.float16 for t in tensors.values() if t.is_floating_point())
    found = {f"eager {'f16' if half else 'f32'}": (lambda: lambda: WORK[graph](tensors), contextlib.nullcontext)}
    if not half or not (graph.startswith("mha") or graph == "decode_attention"):
        return found
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = tensors["q"] if graph.startswith("mha") else tensors["q"].unsqueeze(2)
    causal = graph.endswith("causal")

    def work():
        return (F.scaled_dot_product_attention(q, tensors["k"], tensors["v"], is_causal=causal),)

    found["SDPA f16"] = (lambda: work, contextlib.nullcontext)
    for name in ATTENTION_BACKENDS:
        if hasattr(SDPBackend, name):
            backend = getattr(SDPBackend, name)
            found[f"SDPA f16 {name.split('_')[0].lower()}"] = (lambda: work, lambda backend=backend: sdpa_kernel(backend))
    return found


def attention_reference(tensors, causal, generator):
    b, h, s, d = tensors["q"].shape
    device = tensors["q"].device
    pick = [torch.randint(0, n, (SAMPLES,), generator=generator).to(device) for n in (b, h, s)]
    q = tensors["q"][pick[0], pick[1], pick[2]].double().unsqueeze(1)
    want = []
    for i in range(SAMPLES):
        k, v = (tensors[n][pick[0][i], pick[1][i]].double() for n in "kv")
        scores = scaled(q[i], k)
        if causal:
            scores = scores.masked_fill(torch.arange(s, device=device) > pick[2][i], float("-inf"))
        want.append((scores.softmax(-1) @ v).reshape(d))
    return tuple(pick), torch.stack(want)


def reference(graph, tensors, generator):
    """[(index of the sampled rows in an output, what they are in double)] of the outputs; tensors as they are stored in the
    precision that is measured."""
    if graph.startswith("mha"):
        return [attention_reference(tensors, graph.endswith("causal"), generator)]
    if graph == "decode_attention":
        return [(..., WORK[graph](typed(tensors, torch.float64))[0])]
    if graph == "column_sum":
        pick = torch.randperm(tensors["x"].shape[1], generator=generator)[:SAMPLES].to(tensors["x"].device)
        return [(pick, tensors["x"][:, pick].double().sum(0))]
    names = ROW_INPUTS.get(graph, ("x",))
    rows = tensors[names[0]]
    pick = torch.randperm(rows.shape[0], generator=generator)[:SAMPLES].to(rows.device)
    few = typed({n: t[pick] if n in names else t for n, t in tensors.items()}, torch.float64)
    return [(pick, want) for want in WORK[graph](few)]


def error_of(pairs):
    """||got - want|| / ||want|| over all of them."""
    off = sum(float(((got.double().reshape(-1) - want.reshape(-1)) ** 2).sum()) for got, want in pairs)
    all_of = sum(float((want.double() ** 2).sum()) for _, want in pairs)
    return (off / all_of) ** 0.5 if all_of > 0 else float("inf")


def rounding_of(pairs, precision):
    """error_of the best results that the precision holds: 16 bits hold few digits of a millionth. Files have f32."""
    dtype = torch.float16 if precision == "f16" else torch.float32
    return error_of([(want.to(dtype), want) for _, want in pairs])


def load(path, device):
    array = numpy.load(path)
    return torch.from_numpy(array).to(device)


class Subgraph:
    """One row: what smg is given, its peers, and what its result is worth."""

    def __init__(self, row, folder, work, device):
        self.row, self.work, self.device = row, work, device
        with open(os.path.join(folder, row["graph"] + ".smg"), encoding="utf-8") as file:
            text = file.read()
        for old, new in row["changes"]:
            text = re.sub(old, new, text, flags=re.S)
        self.path = os.path.join(work, row["graph"] + ".smg")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        self.outputs = re.findall(r"^output (\w+) =", text, re.M)
        self.tensors = made(text, row["dims"], device)
        self.inputs, self.references = [], {}

    def stored(self, precision):
        return typed(self.tensors, torch.float16 if precision == "f16" else torch.float32)

    def reference(self, precision):
        """Computed once, for smg and every peer."""
        if precision not in self.references:
            generator = torch.Generator().manual_seed(1)
            self.references[precision] = reference(self.row["graph"], self.stored(precision), generator)
        return self.references[precision]

    def check(self, precision, outputs=None):
        """([(got, want)] of sampled rows, every element is finite) of a peer's outputs, else of the files that smg wrote"""
        if outputs is None:
            outputs = [load(os.path.join(self.work, name + ".npy"), self.device) for name in self.outputs]
        finite = all(bool(torch.isfinite(o).all()) for o in outputs)
        return [(got[at], want) for got, (at, want) in zip(outputs, self.reference(precision), strict=True)], finite

    def peers(self, precision):
        return peers(self.row["graph"], self.stored(precision))

    def compiled(self):
        """(function, arguments) for torch.compile, in f16"""
        return WORK[self.row["graph"]], (self.stored("f16"),)

    def close(self):
        self.tensors, self.references = None, {}
