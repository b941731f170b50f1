"""Measures how long a model takes from the start of `smg run` to its first result; run by scripts/startup-bench.sh.

Cold: smg's caches and the driver's disk cache are empty folders, but for the calibration of the device, which is made
once and told apart. Warm: the same command again, the better of two. Every row has folders of its own, so that no
model finds the kernels of another. Prints a Markdown table; progress goes to stderr.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import startup_models

SIZES = ((1, 8), (3, 53), (1, 128))


def environment(folder):
    """Caches of smg and of drivers below the folder, which may be empty."""
    return {**os.environ, "SMG_CACHE_DIR": f"{folder}/smg", "MESA_SHADER_CACHE_DIR": f"{folder}/driver",
            "__GL_SHADER_DISK_CACHE_PATH": f"{folder}/driver", "XDG_CACHE_HOME": f"{folder}/xdg", "SMG_VALIDATION": "0"}


def call(smg, words, folder, limit):
    """The JSON that the command prints; a text that says why there is none."""
    for part in ("driver", "xdg"):
        os.makedirs(f"{folder}/{part}", exist_ok=True)
    try:
        done = subprocess.run([smg, *words, "--json"], capture_output=True, text=True, timeout=limit,
                              env=environment(folder))
    except subprocess.TimeoutExpired:
        return f"not finished after {limit:.0f} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return lines[-1].removeprefix("smg: ") if lines else f"exit status {done.returncode}"
    return json.loads(done.stdout)


def rows_of(smg, path, folder):
    """Options for each pair of sizes that the model takes, as (label, words); a text when it cannot be read."""
    info = call(smg, ["info", path], folder, 120)
    if isinstance(info, str):
        return info
    rows = []
    for batch, sequence in SIZES:
        given = {}
        for name, facts in info["sizes"].items():
            value = batch if "batch" in name else sequence
            given[name] = value if facts["max"] is None else min(value, facts["max"])
        label = ", ".join(f"{name} {value}" for name, value in given.items()) or "fixed sizes"
        words = [word for name, value in given.items() for word in ("--dim", f"{name}={value}")]
        if (label, words) not in rows:
            rows.append((label, words))
    return rows


def measure(smg, words, calibration, work, limit):
    """Cold and warm of one row."""
    folder = tempfile.mkdtemp(dir=work)
    if os.path.isdir(calibration):
        shutil.copytree(calibration, f"{folder}/smg/calibration")
    cold = call(smg, ["run", *words, "--repeat", "1"], folder, limit)
    warm = cold
    if not isinstance(cold, str):
        again = [call(smg, ["run", *words, "--repeat", "1"], folder, limit) for _ in range(2)]
        bad = [one for one in again if isinstance(one, str)]
        warm = bad[0] if bad else min(again, key=lambda one: one["ready_seconds"])
    shutil.rmtree(folder)
    return cold, warm


def first_run(result):
    """Host seconds of the first run and of filling the inputs: what the other phases leave of the whole."""
    known = ("load_seconds", "device_seconds", "cache_seconds", "analysis_seconds", "code_seconds", "program_seconds")
    return max(0.0, result["ready_seconds"] - sum(result[name] for name in known))


def verdict(result, most):
    seconds = result["ready_seconds"]
    return f"{seconds:.2f} {'PASS' if seconds <= most else 'MISS'}"


def line(name, label, cold, warm, limits):
    if isinstance(cold, str):
        return f"| {name} | {label} | {cold} MISS | | | | | | |"
    phases = [cold["load_seconds"] + cold["device_seconds"], cold["analysis_seconds"], cold["code_seconds"],
              cold["program_seconds"], first_run(cold)]
    told = " | ".join(f"{seconds:.2f}" for seconds in phases)
    if isinstance(warm, str):
        return f"| {name} | {label} | {verdict(cold, limits[0])} | {told} | {warm} MISS |"
    kept = "" if warm["plan_cached"] else " (planned anew)"
    return f"| {name} | {label} | {verdict(cold, limits[0])} | {told} | {verdict(warm, limits[1])}{kept} |"


def models_of(paths):
    """Every model that is given or lies in a given folder, by name."""
    for path in paths:
        path = path.rstrip("/")
        inside = sorted(os.listdir(path)) if os.path.isdir(path) else []
        is_model = not os.path.isdir(path) or "config.json" in inside or "model.onnx" in inside
        if is_model:
            onnx = os.path.join(path, "model.onnx")
            whole = "config.json" in inside and any(name.endswith(".safetensors") for name in inside)
            yield os.path.basename(path), onnx if os.path.isfile(onnx) and not whole else path
            continue
        for name in inside:
            below = os.path.join(path, name)
            if os.path.isdir(below) or name.endswith((".onnx", ".smg")):
                yield from models_of([below])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smg")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--minilm", help="its folder")
    parser.add_argument("--limit", type=float, default=120, help="seconds of one command")
    options = parser.parse_args()
    work = tempfile.mkdtemp()
    try:
        rows = [("MiniLM", options.minilm, (6, 0.5))] if options.minilm else []
        rows += [(name, path, (12, 0.35)) for name, path in startup_models.make(f"{work}/models")]
        rows += [(name, path, (12, 0.35)) for name, path in models_of(options.models)]
        graph = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs", "columns1024", "softmax.smg")
        base = f"{work}/base"
        made = call(options.smg, ["run", graph, "--dim", "rows=8", "--repeat", "1"], base, options.limit)
        again = call(options.smg, ["run", graph, "--dim", "rows=8", "--repeat", "1"], base, options.limit)
        if isinstance(made, str) or isinstance(again, str):
            sys.exit(f"startup-bench: {made if isinstance(made, str) else again}")
        print(f"Calibration of {made['device']}: {made['device_seconds'] - again['device_seconds']:.2f} s, once.\n")
        print("| model | sizes | cold: first result s | load, device | plan | GLSL, SPIR-V | pipelines, upload | "
              "first run | warm: first result s |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, path, limits in rows:
            sizes = rows_of(options.smg, path, base)
            if isinstance(sizes, str):
                print(line(name, "", sizes, sizes, limits), flush=True)
                continue
            for label, words in sizes:
                print(name, label, file=sys.stderr)
                cold, warm = measure(options.smg, [path, *words], f"{base}/smg/calibration", work, options.limit)
                print(line(name, label, cold, warm, limits), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
