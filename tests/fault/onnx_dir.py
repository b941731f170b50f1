"""Directories that hold an ONNX file in place of weights: which file is taken, what lies beside it, what embed makes
of it, and what is refused."""
import json
import math
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from onnx_file import F32, I64, document, field, floats, node, value
from smg_command import SOURCE, VULKAN, Report, folder, has_device, smg, write

work = folder("fault-onnx-dir")
report = Report()
WIDTH, WORDS = 8, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world", "x"]
TABLE = [[math.sin(1 + 3 * row + column) for column in range(WIDTH)] for row in range(len(WORDS))]


def refused(words, *parts):
    report.refusal(words, smg(*words), *parts)


def encoder(output, sequence="sequence_length", batch="batch_size"):
    """Rows of a table by token: one a token, or (sentence_embedding) minus the mean of a text's."""
    weights = [floats("table", (len(WORDS), WIDTH), sum(TABLE, []))]
    if output != "sentence_embedding":
        nodes = [node("Gather", "look", ["table", "input_ids"], [output])]
        return document([value("input_ids", I64, batch, sequence)], [value(output, F32, batch, sequence, WIDTH)], nodes,
                        weights)
    keep = field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))
    axes = field(5, field(1, "axes") + field(8, 1) + field(20, 7))
    nodes = [node("Gather", "look", ["table", "input_ids"], ["rows"]),
             node("ReduceMean", "mean", ["rows"], ["middle"]) + keep + axes, node("Neg", "minus", ["middle"], [output])]
    return document([value("input_ids", I64, batch, sequence)], [value(output, F32, batch, WIDTH)], nodes, weights,
                    opset=17)


def directory(name, files):
    path = f"{work}/{name}"
    for file, data in files.items():
        os.makedirs(os.path.dirname(f"{path}/{file}"), exist_ok=True)
        write(f"{path}/{file}", data)
    return path


def sentence_files(pooling):
    return {"modules.json": json.dumps([{"type": "sentence_transformers.models.Transformer", "path": ""},
                                        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                                        {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}]),
            "1_Pooling/config.json": json.dumps({f"pooling_mode_{pooling}": True}),
            "config.json": json.dumps({"model_type": "bert", "max_position_embeddings": 64}),
            "vocab.txt": "\n".join(WORDS) + "\n"}


def opens():
    """With and without a config beside it, in the folder or in its `onnx`; weights go before it."""
    onnx = encoder("last_hidden_state")
    alone = directory("alone", {"model.onnx": onnx})
    config = directory("config", {"model.onnx": onnx, "config.json": '{"model_type": "frob"}'})
    below = directory("below", {"onnx/model.onnx": onnx, "config.json": "{}"})
    only = directory("only", {"onnx/model.onnx": onnx})
    package = directory("package", {"model/onnx/model.onnx": onnx, "model/config.json": "{}"})
    want = smg("info", f"{alone}/model.onnx").stdout
    report.check("input_ids i64[batch_size, sequence_length]" in want, want)
    for path in (alone, config, below, only, package, f"{below}/onnx"):
        done = smg("info", path)
        report.check(done.returncode == 0 and done.stdout == want, f"{path}: {done.stderr}{done.stdout}")
    both = f"{work}/both"
    shutil.copytree(f"{SOURCE}/tests/models/hf-bert-tiny", both, ignore=shutil.ignore_patterns("b*"))
    write(f"{both}/model.onnx", onnx)
    done = smg("info", both)
    report.check("token_type_ids" in done.stdout, f"weights go before model.onnx: {done.stderr}{done.stdout}")


def refusals():
    refused(["info", directory("empty", {"readme": ""})], "neither config.json nor model.onnx")
    refused(["info", directory("bare", {"config.json": '{"model_type": "bert"}'})], "neither model.safetensors nor model.onnx")
    refused(["info", directory("broken", {"model.onnx": b"\x08"})], "broken/model.onnx")
    refused(["info", directory("json", {"model.onnx": encoder("y"), "config.json": "{"})], "json/config.json")
    plain = directory("plain", {"model.onnx": encoder("last_hidden_state"), "vocab.txt": "\n".join(WORDS)})
    refused(["embed", plain, "hello"], "no pooling")


def embeds():
    """Against rows of the table: pooled here, and by the file."""
    def close(line, want):
        got = [float(word) for word in line.split()]
        return len(got) == WIDTH and all(abs(a - b) < 1e-5 for a, b in zip(got, want))

    def unit(row):
        length = math.sqrt(sum(x * x for x in row))
        return [x / length for x in row]

    texts = {"hello": [2, 5, 3], "hello world x": [2, 5, 6, 7, 3], "x": [2, 7, 3]}
    mean = {text: unit([sum(TABLE[i][d] for i in ids) / len(ids) for d in range(WIDTH)]) for text, ids in texts.items()}
    first = dict.fromkeys(texts, unit(TABLE[2]))
    rows = [("mean_tokens", "last_hidden_state", {}, mean), ("cls_token", "token_embeddings", {}, first),
            ("mean_tokens", "last_hidden_state", {"sequence": 6}, mean),
            ("mean_tokens", "last_hidden_state", {"batch": 1}, mean)]
    for number, (pooling, output, dims, want) in enumerate(rows):
        path = directory(f"embed{number}", {**sentence_files(pooling), "onnx/model.onnx": encoder(output, **dims)})
        done = smg("embed", path, "--no-calibrate", *texts)
        lines = done.stdout.split("\n")[:-1]
        report.check(done.returncode == 0 and len(lines) == len(texts), f"{path}: {done.stderr}")
        for line, (text, row) in zip(lines, want.items()):
            report.check(close(line, row), f"{path}, {text}: {line}, wanted {row}")
    pair = directory("pair", {**sentence_files("mean_tokens"), "model.onnx": encoder("last_hidden_state", batch=2)})
    refused(["embed", pair, "--no-calibrate", "x"], "2 texts at once")
    own = {**sentence_files("max_tokens"), "model.onnx": encoder("sentence_embedding")}
    done = smg("embed", directory("own", own), "--no-calibrate", "hello")
    report.check(close(done.stdout, [-sum(TABLE[i][d] for i in texts["hello"]) / 3 for d in range(WIDTH)]),
                 f"a file that pools itself: {done.stderr}{done.stdout}")


opens()
refusals()
if has_device():
    embeds()
elif VULKAN and os.environ.get("SMG_REQUIRE_DEVICE"):
    report.check(False, "no device")
sys.exit(report.finish())
