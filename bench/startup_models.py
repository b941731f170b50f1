"""Writes three small BERT directories whose widths are no powers of two, for scripts/startup-bench.sh.

    python3 bench/startup_models.py FOLDER

Random weights with a fixed seed, nothing but the standard library: what counts here is shapes, not answers.
"""
import array
import json
import os
import random
import struct
import sys

LAYERS, VOCABULARY, POSITIONS = 2, 320, 160
WIDTHS = {"width72-heads6": (72, 6), "width96-heads3": (96, 3), "width80-heads4": (80, 4)}


def shapes(width):
    yield "embeddings.word_embeddings.weight", (VOCABULARY, width)
    yield "embeddings.position_embeddings.weight", (POSITIONS, width)
    yield "embeddings.token_type_embeddings.weight", (2, width)
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        dense = {"attention.self.query": (width, width), "attention.self.key": (width, width),
                 "attention.self.value": (width, width), "attention.output.dense": (width, width),
                 "intermediate.dense": (4 * width, width), "output.dense": (width, 4 * width)}
        for name, (rows, columns) in dense.items():
            yield f"{at}.{name}.weight", (rows, columns)
            yield f"{at}.{name}.bias", (rows,)
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    for norm in norms:
        yield f"{norm}.weight", (width,)
        yield f"{norm}.bias", (width,)


def write_weights(path, width):
    draw = random.Random(width)
    header, data = {}, array.array("f")
    for name, shape in shapes(width):
        begin, count = 4 * len(data), shape[0] * (shape[1] if len(shape) > 1 else 1)
        near = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        spread = shape[-1] ** -0.5 if len(shape) > 1 else 0.1
        data.extend(near + draw.gauss(0, spread) for _ in range(count))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, 4 * len(data)]}
    if sys.byteorder == "big":
        data.byteswap()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data.tobytes())


def make(folder):
    """The directories, each as name and path."""
    made = []
    for name, (width, heads) in WIDTHS.items():
        path = os.path.join(folder, name)
        os.makedirs(path, exist_ok=True)
        config = {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": width,
                  "num_attention_heads": heads, "num_hidden_layers": LAYERS, "intermediate_size": 4 * width,
                  "hidden_act": "gelu", "layer_norm_eps": 1e-12, "vocab_size": VOCABULARY,
                  "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "pad_token_id": 0}
        with open(os.path.join(path, "config.json"), "w") as file:
            json.dump(config, file, indent=1)
        write_weights(os.path.join(path, "model.safetensors"), width)
        made.append((name, path))
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for _, path in make(sys.argv[1]):
        print(path)
