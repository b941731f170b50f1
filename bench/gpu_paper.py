"""The rows of the paper's tables (SpaceFusion, EuroSys '25): subgraphs and models in f16, in the order in which they are
measured. Plain data, fields as gpu_rows.py tells them. The batch sizes are the paper's, 1 and 32; the lengths, widths and
head counts are ours."""
import gpu_rows

PARTS, RESULTS = ("models", "subgraphs", "large"), "paper.json"
F16 = ("f16",)
PEERS = {"default attention": None, "eager attention": "eager"}

# What the paper tells: family -> (mean speed-up, over what). On V100, A100 and H100, in f16.
TOLD = {
    "MLP stack": (2.35, "cuBLASLt"),
    "LSTM cell": (2.87, "cuBLAS, the larger of two figures"),
    "LayerNorm": (7.25, "PyTorch"),
    "attention": (10.35, "PyTorch, the larger of two figures"),
    "subgraphs": (5.31, "unfused"),
    "models": (3.54, "HuggingFace"),
}
# Geometric means that are wanted here, over all rows of the models: peer -> factor.
WANTED = {"default attention": 2.0, "eager attention": 4.0}


def model(name, graph, dims, repeat, seconds, part="models"):
    return gpu_rows.row(part, name, graph, dims, repeat, gpu_rows.MODELS, precisions=F16, peers=PEERS, seconds=seconds,
                        family=f"batch {dims['batch']}")


def tokens(name, graph, sizes, seconds=11, part="models"):
    """One row for each (batch, sequence, repeat)."""
    return [model(f"{name} b{batch} s{sequence}", graph, {"batch": batch, "sequence": sequence}, repeat, seconds, part)
            for batch, sequence, repeat in sizes]


def subgraph(name, family, graph, dims, repeat, f16, changes=()):
    return gpu_rows.row("subgraphs", name, graph, dims, repeat, f16, precisions=F16, changes=changes, family=family)


def attention(batch, length):
    return subgraph(f"attention b{batch} h12 s{length} d64", "attention", "mha_h12_d64", {"b": batch, "s": length}, 100,
                    gpu_rows.ATTENTION)


def layernorm(rows, width):
    return subgraph(f"LayerNorm {rows}x{width}", "LayerNorm", "layernorm", {"rows": rows}, 100, gpu_rows.FUSED,
                    (("4096", str(width)), ("0.000244140625", repr(1 / width))))


def lstm(batch):
    return subgraph(f"LSTM cell b{batch} h1024", "LSTM cell", "lstm", {"b": batch}, 100, gpu_rows.FUSED)


def mlp(layers):
    return subgraph(f"MLP stack 8192x256, {layers} layers", "MLP stack", "mlp_stack", {"rows": 8192}, 100, gpu_rows.MODELS,
                    ((f"\nw{layers} = .*|\noutput .*", f"\noutput y = x{layers}\n"),))


SHORT_AND_LONG = ((1, 128, 60), (32, 128, 8), (1, 512, 40), (32, 512, 3))
ROWS = [
    *tokens("BERT-base", "bert", SHORT_AND_LONG),
    *tokens("ALBERT-base", "albert", SHORT_AND_LONG),
    *tokens("T5-small encoder", "t5", SHORT_AND_LONG),
    model("ViT-base b1", "vit", {"batch": 1}, 40, 11),
    model("ViT-base b32", "vit", {"batch": 32}, 5, 11),
    *tokens("Llama2-7B shapes, 4 layers,", "llama", ((1, 128, 30), (32, 128, 2), (1, 512, 10)), 22),
    attention(32, 512), attention(1, 512), attention(32, 1024), attention(1, 1024), attention(32, 128), attention(1, 128),
    mlp(20), mlp(8), mlp(4), mlp(2),
    layernorm(16384, 4096), layernorm(1024, 1024), layernorm(8192, 8192),
    lstm(1024), lstm(128), lstm(4096),
    *tokens("Llama2-7B shapes, 4 layers,", "llama", ((32, 512, 1),), 40, "large"),
    *tokens("Llama2-7B, 32 layers,", "llama_7b", ((1, 512, 3),), 110, "large"),
]
