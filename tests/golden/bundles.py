"""A class of a bundle of MiniLM, all run lists, has at most 350 KB beside the weights (decision 0032). Weights are no part
of the repository: those of this model are made up."""
import array
import json
import os
import random
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from smg_command import SOURCE, Report, folder, smg

MOST = 350_000
TARGETS = "h200,lavapipe"  # those with the most code
draw = random.Random(1)
BLOCK = [draw.gauss(0, 1) for _ in range(8191)]

work = folder("golden-bundles")
report = Report()


def shapes(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    rows = {"word": config["vocab_size"], "position": config["max_position_embeddings"], "token_type": config["type_vocab_size"]}
    for name, count in rows.items():
        yield f"embeddings.{name}_embeddings.weight", [count, width]
    norms, dense = ["embeddings.LayerNorm"], {"pooler.dense": [width, width]}
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            dense[f"{at}.{part}"] = [width, width]
        dense[f"{at}.intermediate.dense"] = [inner, width]
        dense[f"{at}.output.dense"] = [width, inner]
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    for name, shape in dense.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]
    for name in norms:
        yield f"{name}.weight", [width]
        yield f"{name}.bias", [width]


def numbers(count, at, near, spread):
    """As many floats as bytes, one block of them again and again from another place on."""
    shift = at // 4 % len(BLOCK)
    block = array.array("f", [near + spread * x for x in BLOCK[shift:] + BLOCK[:shift]]).tobytes()
    return (block * (count * 4 // len(block) + 1))[:count * 4]


def make_model(path):
    shutil.copytree(f"{SOURCE}/tests/models/minilm", path)  # with its pooling
    with open(f"{path}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    header, end = {}, 0
    for name, shape in shapes(config):
        begin, end = end, end + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, row in header.items():
            begin, end = row["data_offsets"]
            spread = row["shape"][1] ** -0.5 if len(row["shape"]) > 1 else 0.1
            file.write(numbers((end - begin) // 4, begin, float("LayerNorm.weight" in name), spread))


make_model(f"{work}/minilm")
for precision in ("f32", "f16"):
    out = f"{work}/minilm-{precision}.smgb"
    done = smg("compile", f"{work}/minilm", "-o", out, "--target", TARGETS, "--precision", precision, "--dim", "batch=1",
               "--dim", "sequence=128")
    report.check(done.returncode == 0, f"smg compile, {precision}: {done.stderr}")
    told = json.loads(smg("info", out, "--json").stdout or '{"classes": []}')
    report.check(len(told["classes"]) == 2, f"{precision}: {told}")
    for row in told["classes"]:
        print(f"{precision} {row['name']}: {row['bytes']} bytes, {row['run_lists']} run lists")
        report.check(row["bytes"] <= MOST, f"{precision}: class {row['name']} has {row['bytes']} bytes, at most {MOST}")
    os.remove(out)
os.remove(f"{work}/minilm/model.safetensors")
sys.exit(report.finish())
