"""The models of the GPU table in PyTorch: random weights, written as a directory for smg, timed as a peer, and in double as the
reference."""
import contextlib
import copy
import os
import shutil

import numpy
import torch

import gpu_peers


def bert(**changes):
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(**changes), add_pooling_layer=False)


def minilm():
    return bert(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)


def albert():
    from transformers import AlbertConfig, AlbertModel
    return AlbertModel(AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072),
                       add_pooling_layer=False)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config())


def vit():
    from transformers import ViTConfig, ViTModel
    return ViTModel(ViTConfig(), add_pooling_layer=False)


def t5():
    from transformers import T5Config, T5EncoderModel
    return T5EncoderModel(T5Config())


def llama(layers=4):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=layers,
                                        num_attention_heads=32, vocab_size=32000))


def llama_7b():
    return llama(32)


MAKE = {make.__name__: make for make in (bert, minilm, albert, gpt2, vit, t5, llama, llama_7b)}
LOGITS = ("gpt2", "llama", "llama_7b")
MASKED = ("bert", "minilm", "albert", "t5")


class Made:
    """One model: its directory, and its weights on the device. Made once for all of its rows. `saved`: the type in the
    directory, None for no directory."""

    def __init__(self, name, work, device, saved=torch.float32):
        torch.manual_seed(1)
        with torch.device(device):
            self.f32 = MAKE[name]().eval()
        self.f32 = self.f32.to(device)
        self.name, self.device = name, device
        self.folder = os.path.join(work, name)
        if saved:
            self.typed(saved).save_pretrained(self.folder, safe_serialization=True)

    def typed(self, dtype, attention=None):
        """The model in a type, with HuggingFace's default attention or another one by its name."""
        if dtype == torch.float32 and not attention:
            return self.f32
        model = copy.deepcopy(self.f32).to(dtype)
        if attention:
            model.set_attn_implementation(attention)
        return model

    def attention(self):
        """The name of the default attention."""
        return self.f32.config._attn_implementation

    def close(self):
        self.f32 = None
        shutil.rmtree(self.folder, ignore_errors=True)


class Model:
    """One row, with the methods of gpu_peers.Subgraph."""

    def __init__(self, row, made, work, device):
        self.row, self.made, self.work, self.device = row, made, work, device
        self.path, self.attention, self.rows = made.folder, made.attention(), None
        self.outputs = ["logits" if row["graph"] in LOGITS else "last_hidden_state"]
        batch = row["dims"]["batch"]
        generator = torch.Generator().manual_seed(2)
        if row["graph"] == "vit":
            pixels = torch.randn(batch, 3, 224, 224, generator=generator).half().float()
            self.arguments = {"pixel_values": pixels.to(device)}
        else:
            shape = (batch, row["dims"]["sequence"])
            self.arguments = {"input_ids": torch.randint(0, 30000, shape, generator=generator).to(device)}
        self.inputs = []
        for name, value in self.arguments.items():
            path = os.path.join(work, f"in_{name}.npy")
            numpy.save(path, value.cpu().numpy())
            self.inputs += ["--input", f"{name}={path}"]
        if row["graph"] in MASKED:  # smg's is 1 beside files
            self.arguments["attention_mask"] = torch.ones(shape, device=device, dtype=torch.long)

    def call(self, model, dtype):
        arguments = {n: a.to(dtype) if a.is_floating_point() else a for n, a in self.arguments.items()}
        if self.row["graph"] in LOGITS:
            arguments["use_cache"] = False
        return lambda: (model(**arguments)[0],)

    def reference(self):
        """(index of the sampled rows, what they are in double), computed once: weights are rounded by who computes."""
        if self.rows is None:
            (want,) = self.call(self.made.typed(torch.float64), torch.float64)()
            want = want.reshape(-1, want.shape[-1])
            pick = torch.randperm(len(want), generator=torch.Generator().manual_seed(1))[:gpu_peers.SAMPLES].to(want.device)
            self.rows = pick, want[pick]
        return self.rows

    def check(self, precision, outputs=None):
        """As gpu_peers.Subgraph's; the reference is the same in every precision."""
        got = outputs[0] if outputs else gpu_peers.load(os.path.join(self.work, self.outputs[0] + ".npy"), self.device)
        finite = bool(torch.isfinite(got).all())
        pick, want = self.reference()
        return [(got.reshape(-1, want.shape[-1])[pick], want)], finite

    def peers(self, precision):
        dtype = torch.float16 if precision == "f16" else torch.float32
        return {f"{name} {precision}": (lambda attention=attention: self.call(self.made.typed(dtype, attention), dtype),
                                        contextlib.nullcontext)
                for name, attention in self.row["peers"].items()}

    def compiled(self):
        """(function, arguments) for torch.compile, in f16"""
        return self.call(self.made.typed(torch.float16), torch.float16), ()

    def close(self):
        self.arguments = self.rows = None
