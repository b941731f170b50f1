"""Measures smg beside PyTorch eager on one GPU and prints a Markdown table.

Run by scripts/gpu-bench.sh. Every smg figure is the median of interleaved fused and unfused replays (GPU timestamps, after a
warm-up by time, see `smg bench`), every PyTorch figure the median of CUDA events after the same warm-up, in the same process
run. A result that `smg run --check` does not pass is marked WRONG and does not count.
"""
import json
import os
import statistics
import subprocess
import sys
import time

import torch


def smi(query):
    out = subprocess.run(["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader"], capture_output=True, text=True)
    return out.stdout.strip().splitlines()[0] if out.returncode == 0 and out.stdout.strip() else "unknown"


def smg(binary, *arguments):
    done = subprocess.run([binary, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def torch_seconds(work, warm=0.8, span=0.6):
    """Median seconds of one call of work() by CUDA events."""
    start = time.time()
    while time.time() - start < warm:
        work()
    torch.cuda.synchronize()
    times = []
    start = time.time()
    while time.time() - start < span or len(times) < 5:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def measure(binary, name, path, dims, peer):
    arguments = [part for key, value in dims.items() for part in ("--dim", f"{key}={value}")]
    code, out, err = smg(binary, "run", path, "--check", *arguments)
    right = "PASS" if code == 0 else "WRONG"
    print(name, right, (out + err).strip().splitlines()[-1:], file=sys.stderr)
    code, out, err = smg(binary, "bench", path, "--json", *arguments)
    if code != 0:
        return f"| {name} | failed: {err.strip()} | | | | | | |"
    row = json.loads(out)
    clock = smi("clocks.sm")
    fused, unfused = row["fused"], row["unfused"]
    eager = torch_seconds(peer)
    return (f"| {name} | {fused['kernels']} / {unfused['kernels']} | {fused['seconds'] * 1e6:.1f} | "
            f"{unfused['seconds'] * 1e6:.1f} | {unfused['seconds'] / fused['seconds']:.2f} | {eager * 1e6:.1f} | "
            f"{eager / fused['seconds']:.2f} | {right}, {clock} |")


def encoder(folder):
    """A MiniLM-L6 of random weights as a model directory, and the same model in PyTorch."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    config = BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                        intermediate_size=1536, max_position_embeddings=512, attn_implementation="eager")
    model = BertModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder, safe_serialization=True)
    return model.cuda()


def main():
    binary, graphs, work, commit = sys.argv[1:5]
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = ["| work | kernels fused / unfused | fused us | unfused us | unfused / fused | PyTorch eager us | "
            "PyTorch / fused | check, SM clock |", "|---|---|---|---|---|---|---|---|"]
    x = torch.randn(16384, 4096, device="cuda")
    gain, shift = torch.randn(4096, device="cuda"), torch.randn(4096, device="cuda")
    peers = {
        "softmax": lambda: torch.softmax(x, 1),
        "layernorm": lambda: torch.nn.functional.layer_norm(x, (4096,), gain, shift),
        "rmsnorm": lambda: torch.nn.functional.rms_norm(x, (4096,), gain),
    }
    with torch.no_grad():
        for name, peer in peers.items():
            rows.append(measure(binary, f"{name} 16384x4096 f32", os.path.join(graphs, name + ".smg"), {"rows": 16384},
                                peer))
        folder = os.path.join(work, "encoder")
        model = encoder(folder)
        for batch in (1, 32):
            ids = torch.randint(0, 30000, (batch, 128), device="cuda")
            mask = torch.ones_like(ids)
            rows.append(measure(binary, f"MiniLM-L6 b{batch} s128 f32", folder, {"batch": batch, "sequence": 128},
                                lambda: model(input_ids=ids, attention_mask=mask)))
    print(f"Device {smi('name')}, driver {smi('driver_version')}, PyTorch {torch.__version__}, commit {commit}. "
          f"Random weights and inputs.\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
