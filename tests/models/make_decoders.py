"""Writes the small model directories hf-mistral-small, hf-qwen2-small and hf-qwen3-small beside this file, with what
the decoder below, plain numpy in double, answers for them.

    python3 tests/models/make_decoders.py

Needs numpy only; no test needs this script. Weights are random, f32, as in make_hf.py. Cases:
b<batch>s<sequence>/{in.input_ids,out.logits}.npy.
"""

import json
import os
import shutil
import struct

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 90, "intermediate_size": 40, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "rope_theta": 1000.0, "hidden_act": "silu"}
MODELS = {
    "mistral": {"architectures": ["MistralForCausalLM"], "head_dim": 6, "sliding_window": 32,
                "tie_word_embeddings": False},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False, "sliding_window": 4,
              "tie_word_embeddings": True},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "head_dim": 8, "attention_bias": False,
              "use_sliding_window": False, "tie_word_embeddings": True},
}


def make_weights(kind, c, draw):
    def matrix(rows, columns):
        return (draw.standard_normal((rows, columns)) * columns**-0.5).astype(numpy.float32)

    def vector(width, middle):
        return (middle + 0.1 * draw.standard_normal(width)).astype(numpy.float32)

    h, width = c["hidden_size"], c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
    q, kv = c["num_attention_heads"] * width, c["num_key_value_heads"] * width
    out = {"model.embed_tokens.weight": matrix(c["vocab_size"], h), "model.norm.weight": vector(h, 1)}
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        out[at + "input_layernorm.weight"] = vector(h, 1)
        out[at + "post_attention_layernorm.weight"] = vector(h, 1)
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            out[f"{at}self_attn.{name}_proj.weight"] = matrix(rows, h)
            if kind == "qwen2":
                out[f"{at}self_attn.{name}_proj.bias"] = vector(rows, 0)
            if kind == "qwen3" and name != "v":
                out[f"{at}self_attn.{name}_norm.weight"] = vector(width, 1)
        out[at + "self_attn.o_proj.weight"] = matrix(h, q)
        out[at + "mlp.gate_proj.weight"] = matrix(c["intermediate_size"], h)
        out[at + "mlp.up_proj.weight"] = matrix(c["intermediate_size"], h)
        out[at + "mlp.down_proj.weight"] = matrix(h, c["intermediate_size"])
    if not c["tie_word_embeddings"]:
        out["lm_head.weight"] = matrix(c["vocab_size"], h)
    return out


def norm(x, scale, eps):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale


def heads(w, at, name, x, count, eps, angles):
    y = x @ w[f"{at}{name}_proj.weight"].T + w.get(f"{at}{name}_proj.bias", 0)
    y = y.reshape(*x.shape[:2], count, -1)
    if f"{at}{name}_norm.weight" in w:
        y = norm(y, w[f"{at}{name}_norm.weight"], eps)
    y = y.transpose(0, 2, 1, 3)
    if name == "v":
        return y
    first, second = numpy.split(y, 2, -1)
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    return numpy.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def attention(w, at, x, c):
    length, eps, groups = x.shape[1], c["rms_norm_eps"], c["num_attention_heads"] // c["num_key_value_heads"]
    width = w[at + "q_proj.weight"].shape[0] // c["num_attention_heads"]
    angles = numpy.outer(numpy.arange(length), c["rope_theta"] ** (-numpy.arange(0, width, 2) / width))
    q = heads(w, at, "q", x, c["num_attention_heads"], eps, angles)
    k = heads(w, at, "k", x, c["num_key_value_heads"], eps, angles).repeat(groups, 1)
    v = heads(w, at, "v", x, c["num_key_value_heads"], eps, angles).repeat(groups, 1)
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(width)
    row, column = numpy.arange(length)[:, None], numpy.arange(length)[None]
    seen = column <= row
    if c.get("sliding_window") and c.get("use_sliding_window", True):
        seen &= row - column < c["sliding_window"]
    scores = numpy.where(seen, scores, -numpy.inf)
    e = numpy.exp(scores - scores.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True)) @ v
    return y.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1) @ w[at + "o_proj.weight"].T


def logits(w, ids, c):
    w = {name: value.astype(numpy.float64) for name, value in w.items()}
    x = w["model.embed_tokens.weight"][ids]
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        x = x + attention(w, at + "self_attn.", norm(x, w[at + "input_layernorm.weight"], c["rms_norm_eps"]), c)
        y = norm(x, w[at + "post_attention_layernorm.weight"], c["rms_norm_eps"])
        gate = y @ w[at + "mlp.gate_proj.weight"].T
        y = gate / (1 + numpy.exp(-gate)) * (y @ w[at + "mlp.up_proj.weight"].T)
        x = x + y @ w[at + "mlp.down_proj.weight"].T
    x = norm(x, w["model.norm.weight"], c["rms_norm_eps"])
    return x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def save_weights(path, weights):
    header, data = {}, b""
    for name, value in sorted(weights.items()):
        offsets = [len(data), len(data) + value.nbytes]
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": offsets}
        data += value.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def main():
    for number, (kind, own) in enumerate(MODELS.items()):
        folder = os.path.join(HERE, f"hf-{kind}-small")
        shutil.rmtree(folder, ignore_errors=True)
        c = {"model_type": kind, **SIZES, **own}
        weights = make_weights(kind, c, numpy.random.default_rng(40 + number))
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
            out.write(json.dumps(c, indent=2, sort_keys=True) + "\n")
        save_weights(os.path.join(folder, "model.safetensors"), weights)
        for batch, length in ((1, 5), (2, 21)):
            where = os.path.join(folder, f"b{batch}s{length}")
            os.makedirs(where)
            ids = numpy.random.default_rng(length).integers(3, c["vocab_size"], (batch, length))
            numpy.save(os.path.join(where, "in.input_ids.npy"), ids)
            numpy.save(os.path.join(where, "out.logits.npy"), logits(weights, ids, c).astype(numpy.float32))


main()
