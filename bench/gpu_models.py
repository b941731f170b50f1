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


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=4,
                                        num_attention_heads=32, vocab_size=32000))


MAKE = {"bert": bert, "minilm": minilm, "albert": albert, "gpt2": gpt2, "vit": vit, "t5": t5, "llama": llama}
LOGITS = ("gpt2", "llama")
MASKED = ("bert", "minilm", "albert", "t5")


class Made:
    """One model: its directory, and its weights on the device. Made once for all of its rows."""

    def __init__(self, name, work, device, saved=True):
        torch.manual_seed(1)
        with torch.device(device):
            self.f32 = MAKE[name]().eval()
        self.f32 = self.f32.to(device)
        self.name, self.device = name, device
        self.folder = os.path.join(work, name)
        if saved:
            self.f32.save_pretrained(self.folder, safe_serialization=True)

    def typed(self, dtype):
        return self.f32 if dtype == torch.float32 else copy.deepcopy(self.f32).to(dtype)

    def close(self):
        self.f32 = None
        shutil.rmtree(self.folder, ignore_errors=True)


class Model:
    """One row, with the methods of gpu_peers.Subgraph."""

    def __init__(self, row, made, work, device):
        self.row, self.made, self.work, self.device = row, made, work, device
        self.path = made.folder
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
        return lambda: model(**arguments)[0]

    def check(self, precision):
        """(error, every element is finite)"""
        got = gpu_peers.load(os.path.join(self.work, self.outputs[0] + ".npy"), self.device)
        finite = bool(torch.isfinite(got).all())
        want = self.call(self.made.typed(torch.float64), torch.float64)()
        got, want = (t.reshape(-1, want.shape[-1]) for t in (got, want))
        pick = torch.randperm(len(want), generator=torch.Generator().manual_seed(1))[:gpu_peers.SAMPLES].to(got.device)
        return gpu_peers.error_of([(got[pick], want[pick])]), finite

    def peers(self, precision):
        dtype = torch.float16 if precision == "f16" else torch.float32
        return {f"eager {precision}": (self.call(self.made.typed(dtype), dtype), contextlib.nullcontext)}

    def compiled(self):
        """(function, arguments) for torch.compile, in f16"""
        return self.call(self.made.typed(torch.float16), torch.float16), ()

    def close(self):
        self.arguments = None
