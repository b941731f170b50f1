"""Writes the small model directories hf-*-small beside this file, with what PyTorch answers for them.

    python3 tests/models/make_hf.py [NAME...]

Needs numpy, torch, transformers and safetensors; no test needs this script. Weights are random with a
spread that keeps every layer alive. Each directory differs from the defaults of its family where a
reader of the configuration could go wrong: prefixes of tensor names, shared layers, groups of heads,
types of weights, shards, scaled rotary positions. Cases: b<batch>s<sequence>/{in,out}.<name>.npy.
"""

import json
import os
import shutil
import sys

import numpy
import torch
import transformers as hf

HERE = os.path.dirname(os.path.abspath(__file__))
EAGER = {"attn_implementation": "eager"}


def alive(model, seed):
    """Random weights; norms near 1."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            norm = any(word in name.lower() for word in ("norm", "ln_"))
            if norm and name.endswith("weight"):
                p.copy_(1 + 0.1 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.1 if p.dim() < 2 else p.shape[-1] ** -0.5))
    model.tie_weights()
    return model.eval()


def tokens(batch, length, vocabulary, seed):
    return numpy.random.default_rng(seed).integers(3, vocabulary, (batch, length))


def masks(length):
    """All valid; padding on the left; a hole in the middle; nothing valid."""
    m = numpy.ones((4, length), dtype=numpy.int64)
    m[1, : length // 3] = 0
    m[2, length // 3 : length // 2] = 0
    m[3] = 0
    return m


def save(name, model, cases, answer, dtype=None, **options):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    if dtype is not None:
        model = model.to(dtype)
    model.save_pretrained(folder, **options)
    for extra in ("generation_config.json",):
        if os.path.exists(os.path.join(folder, extra)):
            os.remove(os.path.join(folder, extra))
    model = type(model).from_pretrained(folder, dtype=torch.float32, **EAGER).eval()  # as it was stored
    for case, inputs in cases.items():
        where = os.path.join(folder, case)
        os.makedirs(where)
        with torch.no_grad():
            output, value = answer(model, {k: torch.from_numpy(v) for k, v in inputs.items()})
        for k, v in inputs.items():
            numpy.save(os.path.join(where, f"in.{k}.npy"), v)
        numpy.save(os.path.join(where, f"out.{output}.npy"), value.numpy().astype(numpy.float32))


def hidden(base):
    return lambda m, i: ("last_hidden_state", getattr(m, base)(**i).last_hidden_state)


def text_cases(vocabulary, pad):
    few = tokens(1, 5, vocabulary, 1)
    rows = tokens(4, 19, vocabulary, 2)
    mask = masks(19)
    rows[mask == 0] = pad
    return {"b1s5": {"input_ids": few, "attention_mask": numpy.ones_like(few)},
            "b4s19-masks": {"input_ids": rows, "attention_mask": mask}}


def id_cases(vocabulary):
    return {"b1s5": {"input_ids": tokens(1, 5, vocabulary, 3)},
            "b2s21": {"input_ids": tokens(2, 21, vocabulary, 4)}}


def distilbert(name):
    c = hf.DistilBertConfig(vocab_size=90, max_position_embeddings=40, n_layers=2, n_heads=3, dim=24,
                            hidden_dim=40, activation="relu", **EAGER)
    save(name, alive(hf.DistilBertForSequenceClassification(c), 1), text_cases(90, 0), hidden("distilbert"))


def roberta(name):
    c = hf.RobertaConfig(vocab_size=90, max_position_embeddings=42, num_hidden_layers=2, hidden_size=24,
                         num_attention_heads=2, intermediate_size=40, type_vocab_size=1, pad_token_id=1,
                         layer_norm_eps=1e-5, **EAGER)
    save(name, alive(hf.RobertaForMaskedLM(c), 2), text_cases(90, 1), hidden("roberta"))


def albert(name):
    c = hf.AlbertConfig(vocab_size=90, embedding_size=16, hidden_size=24, num_hidden_layers=3,
                        num_hidden_groups=2, inner_group_num=2, num_attention_heads=2, intermediate_size=40,
                        max_position_embeddings=40, **EAGER)
    save(name, alive(hf.AlbertForMaskedLM(c), 3), text_cases(90, 0), hidden("albert"))


def gpt2(name):
    c = hf.GPT2Config(vocab_size=90, n_positions=40, n_embd=24, n_layer=2, n_head=3, n_inner=40,
                      activation_function="relu", scale_attn_by_inverse_layer_idx=True, **EAGER)
    answer = lambda m, i: ("last_hidden_state", m(**i).last_hidden_state)
    save(name, alive(hf.GPT2Model(c), 4), id_cases(90), answer, torch.float16)


def llama(name):
    c = hf.LlamaConfig(vocab_size=90, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=1, head_dim=8, attention_bias=True,
                       mlp_bias=True, tie_word_embeddings=True, max_position_embeddings=64,
                       rope_parameters={"rope_type": "llama3", "rope_theta": 1000.0, "factor": 4.0,
                                        "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                                        "original_max_position_embeddings": 16}, **EAGER)
    answer = lambda m, i: ("logits", m(**i).logits)
    save(name, alive(hf.LlamaForCausalLM(c), 5), id_cases(90), answer, torch.bfloat16, max_shard_size="12KB")


def llama_linear(name):
    """As older files write it: rope_theta and rope_scaling, untied, a head of keys for each of queries."""
    rope = {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}
    c = hf.LlamaConfig(vocab_size=90, hidden_size=24, intermediate_size=40, num_hidden_layers=1,
                       num_attention_heads=3, max_position_embeddings=40, rope_parameters=rope, **EAGER)
    answer = lambda m, i: ("logits", m(**i).logits)
    save(name, alive(hf.LlamaForCausalLM(c), 8), id_cases(90), answer)
    path = os.path.join(HERE, name, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    for key in ("rope_parameters", "head_dim", "num_key_value_heads", "tie_word_embeddings"):
        del config[key]
    config.update(rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2.0})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def t5(name):
    c = hf.T5Config(vocab_size=90, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_decoder_layers=1, num_heads=2,
                    relative_attention_num_buckets=8, relative_attention_max_distance=12,
                    feed_forward_proj="relu", **EAGER)
    cases = {}
    for case, inputs in text_cases(90, 0).items():
        batch = inputs["input_ids"].shape[0]
        cases[case] = dict(inputs, decoder_input_ids=tokens(batch, 3 if batch == 1 else 26, 90, 5))
    answer = lambda m, i: ("logits", m(**i).logits)
    save(name, alive(hf.T5ForConditionalGeneration(c), 6), cases, answer)


def vit(name):
    c = hf.ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                     image_size=20, patch_size=4, num_channels=1, qkv_bias=False, hidden_act="gelu_new", **EAGER)
    pixels = lambda batch: {"pixel_values": numpy.random.default_rng(batch).standard_normal(
        (batch, 1, 20, 20)).astype(numpy.float32)}
    save(name, alive(hf.ViTForImageClassification(c), 7), {"b1": pixels(1), "b5": pixels(5)}, hidden("vit"))


FAMILIES = {f"hf-{f.__name__.replace('_', '-')}-small": f
            for f in (albert, distilbert, gpt2, llama, llama_linear, roberta, t5, vit)}

if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        FAMILIES[name](name)
        print(name)
