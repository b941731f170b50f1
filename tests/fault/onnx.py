"""ONNX files through the command: what is listed, what runs, and what is refused with one sentence."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from onnx_file import F32, I64, document, field, floats, node, value
from smg_command import VULKAN, Report, folder, has_device, smg, write

work = folder("fault-onnx")
report = Report()


def refused(words, *parts):
    report.refusal(words, smg(*words), *parts)


def model(name, *parts, **options):
    return write(f"{work}/{name}", document(*parts, **options))


def npy(name, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    return write(f"{work}/{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


add = model("add.onnx", [value("a", F32, "batch", 2), value("b", F32, "batch", 2)], [value("y", F32, "batch", 2)],
            [node("Add", "sum", ["a", "b"], ["y"])])
by_bytes = model("add.bin", [value("a", F32, "batch", 2)], [value("y", F32, "batch", 2)],
                 [node("Neg", "minus", ["a"], ["y"])])
strange = model("strange.onnx", [value("x", F32, 3)], [value("y", F32, 3)],
                [node("Frob", "f1", ["x"], ["h"]), node("Tweak", "f2", ["h"], ["y"], "com.example")], opset=17)


def lists():
    done = smg("info", add)
    report.check(done.returncode == 0 and "input    a f32[batch, 2]" in done.stdout, f"info: {done}")
    done = smg("info", by_bytes)
    report.check(done.returncode == 0 and "input    a f32[batch, 2]" in done.stdout, f"info by bytes: {done}")
    done = smg("info", strange)
    report.check(done.returncode == 0 and "2 nodes are not supported" in done.stdout
                 and "Frob, opset 17, node 'f1'" in done.stdout and "com.example.Tweak" in done.stdout
                 and "input    x float32[3]" in done.stdout, f"info of unsupported: {done}")
    done = smg("info", strange, "--json")
    rows = json.loads(done.stdout)["unsupported"]
    report.check([r["op"] for r in rows] == ["Frob", "Tweak"] and rows[0]["opset"] == 17, f"json: {done}")
    done = smg("explain", add, "--target", "careful")
    report.check(done.returncode == 0 and "1 kernels" in done.stdout, f"explain: {done}")


def strings(name):
    return field(1, 1) + field(2, 8) + field(6, "word") + field(8, name)


def unread():
    """What no node reads may be of any type; it is refused by name where it is read."""
    def with_strings(name, read):
        return model(name, [value("a", F32, 2)], [value("y", F32, 2)], [node("Neg", "minus", [read], ["y"])], [strings("s")])
    done = smg("info", with_strings("unread.onnx", "a"))
    report.check(done.returncode == 0 and "input    a f32[2]" in done.stdout, f"unread strings: {done}")
    refused(["info", with_strings("read.onnx", "s")], "tensor 's' holds strings")
    # The same output twice is one too many.
    twice = [value("y", F32, 2)] * 2
    refused(["info", model("twice.onnx", [value("a", F32, 2)], twice, [node("Neg", "minus", ["a"], ["y"])])], "'y'")


def refusals():
    for command in ("run", "bench", "explain"):
        refused([command, strange], "node 'f1' (Frob, opset 17)", "2 nodes are not supported")
    refused(["info", write(f"{work}/empty.onnx", b"")], "holds no ONNX graph (0 bytes)")
    refused(["info", write(f"{work}/text.onnx", "graph g\n")], "not a sound ONNX file")
    refused(["info", f"{work}/missing.onnx"], "missing.onnx", "No such file")
    refused(["info", work + "/folder.onnx"], "folder.onnx")
    refused(["info", model("old.onnx", [], [], [], opset=9)], "opset 9", "11 to 23")
    refused(["info", model("new.onnx", [], [], [], opset=99)], "opset 99", "11 to 23")
    with open(add, "rb") as file:
        whole = file.read()
    refused(["info", write(f"{work}/cut.onnx", whole[:-5])], "cut.onnx")
    refused(["info", model("sum.onnx", [value("a", F32, 3), value("b", F32, 4)], [value("y", F32, 4)],
                           [node("Add", "sum", ["a", "b"], ["y"])])], "node 'sum' (Add, opset 18)", "3", "4")
    refused(["info", model("mm.onnx", [value("a", F32, 2, 3)], [value("y", F32, 2, 2)],
                           [node("MatMul", "product", ["a", "w"], ["y"])],
                           [floats("w", [4, 2], [0.0] * 8)])], "node 'product' (MatMul, opset 18)", "3", "4")


def runs():
    two = npy("two", "<f4", (2, 2), struct.pack("<4f", 1, 2, 3, 4))
    three = npy("three", "<f4", (3, 2), struct.pack("<6f", *range(6)))
    wide = npy("wide", "<f4", (2, 3), struct.pack("<6f", *range(6)))
    ints = npy("ints", "<i8", (2, 2), struct.pack("<4q", 1, 2, 3, 4))
    given = ["run", add, "--input", f"a={two}", "--input"]
    done = smg(*given, f"b={two}", "--check", "--output", f"y={work}/y.npy")
    report.check(done.returncode == 0 and "PASS" in done.stdout, f"run: {done}")
    if os.path.exists(f"{work}/y.npy"):
        with open(f"{work}/y.npy", "rb") as file:
            report.check(struct.unpack("<4f", file.read()[-16:]) == (2, 4, 6, 8), "run: wrong sum")
    refused([*given, f"b={three}"], "'b'", "batch", "3", "2")
    other = model("other.onnx", [value("a", F32, "s", 2), value("b", F32, "t", 2)], [value("y", F32, "s", 2)],
                  [node("Add", "sum", ["a", "b"], ["y"])])
    refused(["run", other, "--input", f"a={two}", "--input", f"b={three}"], "'b'", "axis 0", "3", "2")
    refused([*given, f"b={wide}"], "'b'", "axis 1 is 3, it must be 2")
    refused([*given, f"b={ints}"], "I64", "f32")
    refused([*given, f"c={two}"], "no input 'c'", "a, b")
    for words in (["bench", "--repeat", "2"], ["run", "--repeat", "1", "--profile"]):
        done = smg(words[0], add, *words[1:], "--no-calibrate", "--check", "--json", "--input", f"a={two}")
        report.check(done.returncode == 0 and "sizes" in json.loads(done.stdout), f"{words}: {done}")


lists()
unread()
refusals()
if has_device():
    runs()
elif VULKAN and os.environ.get("SMG_REQUIRE_DEVICE"):
    report.check(False, "no device")
sys.exit(report.finish())
