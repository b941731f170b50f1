"""The rows of the GPU table: what is measured, in which order, and what a result may be off by. Plain data; what a row is
in PyTorch stands in gpu_peers.py and gpu_models.py.

    name      of the row, as the table shows it
    part      subgraphs or models
    graph     file of bench/graphs, or the name of a model of gpu_models.py
    changes   (regular expression, what takes its place) for the text of the graph: other widths, fewer layers
    dims      sizes of the run
    repeat    rounds of smg bench in f32; f16 takes three times as many
    f16       the largest ||out - reference|| / ||reference|| over the sampled rows; None: not measured in f16
    goal      microseconds that are wanted in f16, on GOALS_OF
    words     options of smg bench
    peers     of a model: {name: attention of HuggingFace, None for the default}
    seconds   that the row is given before it was ever measured
    family    rows whose speed-ups the paper tells as one mean

PARTS are measured in that order; RESULTS is the file.

BY_HAND: kernels of a folder packed with --reference: (row, precision and kind, job, the kernel's job for lavapipe).
"""

PARTS, RESULTS = ("subgraphs", "models", "ggml", "hand", "compiled"), "results.json"
GOALS_OF = "NVIDIA H200"

F32_LIMIT = 1e-4
PRODUCTS, ATTENTION, FUSED, MODELS = 3e-4, 4e-4, 1e-3, 1e-2


def row(part, name, graph, dims, repeat, f16, goal=None, precisions=("f32", "f16"), words=(),
        changes=(), peers=None, seconds=8, family=None):
    return {"part": part, "name": name, "graph": graph, "changes": changes, "dims": dims, "repeat": repeat, "f16": f16,
            "goal": goal, "precisions": precisions if f16 else ("f32",), "words": list(words),
            "peers": peers or {"eager": None}, "seconds": seconds, "family": family}


def subgraph(*arguments, **more):
    return row("subgraphs", *arguments, **more)


def model(*arguments, **more):
    return row("models", *arguments, **more)


TOKENS_128 = {"batch": 1, "sequence": 128}
ROWS = [
    subgraph("GEMM 4096^3", "gemm", {"rows": 4096}, 60, PRODUCTS, 480),
    subgraph("GEMM + bias + GELU 4096^3", "gemm_gelu", {"rows": 4096}, 60, PRODUCTS, 490),
    subgraph("attention b32 h12 s512 d64", "mha_h12_d64", {"b": 32, "s": 512}, 120, ATTENTION, 130),
    subgraph("attention b32 h12 s512 d64 causal", "mha_h12_d64_causal", {"b": 32, "s": 512}, 120, ATTENTION, 95),
    subgraph("attention b8 h16 s1024 d64", "mha_h16_d64", {"b": 8, "s": 1024}, 100, ATTENTION, 155),
    subgraph("attention b8 h16 s1024 d64 causal", "mha_h16_d64_causal", {"b": 8, "s": 1024}, 100, ATTENTION, 105),
    subgraph("attention b1 h32 s4096 d128", "mha_h32_d128", {"b": 1, "s": 4096}, 15, ATTENTION, 1200),
    subgraph("attention b1 h32 s4096 d128 causal", "mha_h32_d128_causal", {"b": 1, "s": 4096}, 15, ATTENTION, 720),
    subgraph("LSTM cell b1024 h1024", "lstm", {"b": 1024}, 150, FUSED, 62),
    subgraph("RMSNorm -> GEMM 4096^3", "rms_gemm", {"rows": 4096}, 50, FUSED, 520),
    subgraph("SwiGLU 2048x4096x11008", "swiglu", {"rows": 2048}, 12, FUSED, 2300),
    subgraph("matrix-vector 4096 -> 14336, 1 row", "gemv", {"rows": 1}, 150, PRODUCTS, 33),
    subgraph("matrix-vector 4096 -> 14336, 8 rows", "gemv", {"rows": 8}, 150, PRODUCTS),
    subgraph("softmax 16384x4096", "softmax", {"rows": 16384}, 150, FUSED),
    subgraph("LayerNorm 16384x4096", "layernorm", {"rows": 16384}, 150, FUSED),
    subgraph("RMSNorm 16384x4096", "rmsnorm", {"rows": 16384}, 150, FUSED),
    subgraph("cross-entropy 4096x32000", "cross_entropy", {"rows": 4096}, 100, None),
    subgraph("decoding attention b1 h32 kv8192 d128", "decode_attention", {"b": 1, "t": 8192}, 150, FUSED),
    subgraph("SwiGLU 1x4096x11008", "swiglu", {"rows": 1}, 150, FUSED),
    subgraph("MLP stack 8192x256, 20 layers", "mlp_stack", {"rows": 8192}, 150, MODELS),
    subgraph("softmax 8x1048576", "long_softmax", {"rows": 8, "n": 1 << 20}, 150, FUSED),
    subgraph("column sum 262144x1024", "column_sum", {"rows": 262144}, 100, FUSED),
    model("MiniLM-L6 b1 s128", "minilm", TOKENS_128, 300, MODELS, 220),
    model("MiniLM-L6 b32 s128", "minilm", {"batch": 32, "sequence": 128}, 60, MODELS, 900),
    model("BERT-base b1 s128", "bert", TOKENS_128, 120, MODELS, 600),
    model("BERT-base b32 s512", "bert", {"batch": 32, "sequence": 512}, 4, MODELS, 13500),
    model("GPT-2 b1 s512", "gpt2", {"batch": 1, "sequence": 512}, 60, MODELS, 900),
    model("T5-small encoder b1 s512", "t5", {"batch": 1, "sequence": 512}, 150, MODELS, 450),
    model("ViT-base b1", "vit", {"batch": 1}, 80, MODELS, 700),
    model("ViT-base b32", "vit", {"batch": 32}, 8, MODELS, 6000),
    model("Llama-7B shapes, 4 layers, prefill 2048", "llama", {"batch": 1, "sequence": 2048}, 3, MODELS, 15500),
    model("Llama-7B shapes, 4 layers, 1 token", "llama", {"batch": 1, "sequence": 1}, 100, MODELS),
    model("ALBERT-base b1 s128", "albert", TOKENS_128, 120, MODELS),
]

SHAPES = ("b32 h12 s512 d64", "b8 h16 s1024 d64", "b1 h32 s4096 d128")
BY_HAND = [
    ("GEMM 4096^3", "f16 packed", "gemm_packed_4096", "gp"),
    ("GEMM 4096^3", "f16 staged", "gemm_4096", "gemm_s"),
    ("GEMM 4096^3", "f32 16x8 a lane", "gemms_f32_4096", "gs_f32"),
    ("GEMM 4096^3", "f32 8x8 a lane", "gemms_f32_4096_8x8", "gs_f32"),
    ("GEMM + bias + GELU 4096^3", "f16", "gemm_4096_bias_gelu", "gemm_e"),
    *[(f"attention {shape}", "f16", f"attn_{shape.replace(' ', '')}", "attn_1") for shape in SHAPES],
    *[(f"attention {shape}", "f16 portable", f"attnp_{shape.replace(' ', '')}", "port") for shape in SHAPES],
    *[(f"attention {shape} causal", "f16", f"attn_{shape.replace(' ', '')}_causal", "attn_c") for shape in SHAPES],
    ("attention b8 h16 s1024 d64", "f32", "attns_f32_b8h16s1024d64", "as_f32"),
    ("matrix-vector 4096 -> 14336, 1 row", "f16", "gemv_14336x4096_f16", "gemv_f16"),
    *[(f"{name} 16384x4096", precision, f"rows_{name.lower()}_{precision}", tiny)
      for name, tiny in (("softmax", "rows_s"), ("LayerNorm", "rows_l"), ("RMSNorm", "rows_r")) for precision in ("f16", "f32")],
    ("MLP stack 8192x256, 20 layers", "f16", "mlp", "mlp_0"),
]
