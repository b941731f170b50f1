"""smg embed on a small sentence encoder made here (hf-bert-tiny's weights, a vocabulary of 320 pieces): what it
prints for odd texts, in which order, and what it refuses with one sentence."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SMG, SOURCE, VULKAN, Report, folder, has_device, smg, write

work = folder("fault-embed")
report = Report()
WIDTH = 64


def encoder():
    path = f"{work}/encoder"
    others = shutil.ignore_patterns("*.npy", "vocab.txt", "config.json")
    shutil.copytree(f"{SOURCE}/tests/models/minilm", path, ignore=others)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(f"{SOURCE}/tests/models/hf-bert-tiny/{name}", path)
    os.makedirs(f"{path}/1_Pooling", exist_ok=True)
    shutil.copy(f"{SOURCE}/tests/models/minilm/1_Pooling/config.json", f"{path}/1_Pooling")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    pieces += [f"##{chr(c)}" for c in range(97, 123)] + ["hello", "world", "\u00e9", "\u6f22", "\u05e9"]
    write(f"{path}/vocab.txt", "\n".join(pieces + [f"[unused{i}]" for i in range(320 - len(pieces))]) + "\n")
    return path


model = encoder()
words = ["embed", model, "--no-calibrate"]


def embed(data, *more):
    done = smg(*words, *more, stdin=data if isinstance(data, bytes) else data.encode())
    good = done.returncode == 0 and done.stderr == ""
    report.check(good, f"{data[:40]!r} {more}: {done.returncode} {done.stderr}")
    return done.stdout.split("\n")[:-1]


def refused(data, *parts, more=()):
    done = smg(*words, *more, stdin=data)
    report.check(done.returncode == 2 and done.stderr.count("\n") == 1 and all(p in done.stderr for p in parts),
                 f"{data[-20:]!r}: {done.returncode} {done.stderr!r}, wanted {parts}")
    return done.stdout.count("\n")


def alike(some, others):
    """The same vectors but for rounding: the other texts of a batch decide how much is padded."""
    return len(some) == len(others) and all(
        abs(float(a) - float(b)) < 1e-5 for x, y in zip(some, others) for a, b in zip(x.split(), y.split(), strict=True))


def texts():
    report.check(embed("") == [], "no text, no line")
    hello = embed("hello\n")[0]
    numbers = [float(word) for word in hello.split(" ")]
    report.check(len(numbers) == WIDTH and abs(sum(x * x for x in numbers) - 1) < 1e-5, f"not of length 1: {hello}")
    same = embed("HELLO\r\n hello\t\nhe\0llo\nhello")
    report.check(alike(same, [hello] * 4), f"not all are 'hello': {same}")
    odd = ["", "hello", "\u05e9\u05dc\u05d5\u05dd \u202e", "\U0001f916\U0001f469\u200d\U0001f469", "e\u0301 \u00e9",
           "\u6f22\u5b57", "a" * 100000, "hello " * 500, 'q"\\u', "\x01\x7f", "\u2028"]
    lines = embed("\n".join(odd) + "\n")
    report.check(len(lines) == len(odd) and alike(lines[1:2], [hello]), "one line a text, in order")
    alone = smg(*words, "--", *odd[:6] + odd[8:])
    report.check(alike(alone.stdout.split("\n")[:-1], lines[:6] + lines[8:]), f"texts as words: {alone.stderr}")


def windows():
    """More than a window, all lengths mixed: the order is kept, and a batch may be limited to one row."""
    many = [" ".join(["hello", "world", "x"][i % 3] for _ in range(i * 7 % 23)) for i in range(300)]
    lines = embed("\n".join(many) + "\n")
    report.check(len(lines) == 300 and lines[1] != lines[2], "300 lines")
    some = (0, 1, 255, 256, 299)
    alone = embed("\n".join(many[i] for i in some) + "\n")
    report.check(alike(alone, [lines[i] for i in some]), "lines are out of order")
    cut = embed("hello world x y z\nhello world\n", "--max-dim", "sequence=4", "--max-dim", "batch=1")
    report.check(alike(cut, embed("hello world\nhello world\n")), "batches of one, cut at the maximum")


def documents():
    given = 'he\0l"l\\o \u6f22 \U0001f916\x7f'
    row = json.loads(embed(given + "\n", "--json")[0])
    report.check(row["text"] == given and len(row["embedding"]) == WIDTH, f"{row['text']!r}")


def refusals():
    for bad in (b"\xff\xfe", b"\xed\xa0\x80", b"abc\xe6\xbc"):
        report.check(refused(bad + b"\n", "text 1", "not UTF-8", f"of {len(bad)}") == 0, "something was printed")
    printed = refused(b"x\n" * 259 + b"\xff\n", "after 256 texts", "text 260")
    report.check(printed == 256, f"{printed} lines before the window that fails")
    done = subprocess.run(f"'{SMG}' {' '.join(words)} <&-", shell=True, capture_output=True, text=True)
    report.check(done.returncode == 2 and done.stderr == "smg: cannot read stdin\n", f"closed stdin: {done}")
    for out in (">&-", ">/dev/full"):
        done = subprocess.run(f"'{SMG}' {' '.join(words)} hello {out}", shell=True, capture_output=True, text=True)
        report.check(done.returncode == 2 and done.stderr == "smg: cannot write the results\n", f"{out}: {done}")


if not has_device():
    print("skipped: no Vulkan device")
    sys.exit(1 if VULKAN and os.environ.get("SMG_REQUIRE_DEVICE") else 77)
texts()
windows()
documents()
refusals()
sys.exit(report.finish())
