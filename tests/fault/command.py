"""Bad input to the command, a table: exit status 2, one sentence on stderr, nothing half-written."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SMG, SOURCE, VULKAN, Report, folder, has_device, read, smg, write

work = folder("fault-command")
report = Report()
# A sanitizer shows nothing new where one refusal follows the other, or where model.bert plans the same model.
SANITIZED = bool(os.environ.get("SMG_SANITIZE"))


def npy(name, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * ((64 - (len(header) + 11) % 64) % 64) + "\n"
    return write(f"{work}/{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def graph(name, *lines):
    return write(f"{work}/{name}.smg", "\n".join(("graph g", *lines)) + "\n")


def refused(words, *parts, **options):
    report.refusal(words, smg(*words, **options), *parts)


two = graph("two", "dim n max 16", "x = input f32[n]", "y = log(x)", "s = sum(x) axis=0", "output y = y", "output s = s")
neg = graph("neg", "x = input f32[n]", "y = neg(x)", "output y = y")
table = graph("table", "ids = input i64[n]", "t = constant f32[6, 4] random seed=1", "y = gather(t, ids)", "output y = y")
empty_dir = os.path.join(work, "dir")
os.makedirs(empty_dir)
mask = graph("mask", "dim b max 8", "dim s max 16", "m = input i32[b, s]", "n = input i32[b, 1]", "f = input f32[b, s]",
             "y = add(m, n)", "z = neg(f)", "output y = y", "output z = z")
binary = write(f"{work}/binary.smg", b"\xff\xfe\x00\x01")


def arguments():
    refused(["frob"], "'frob'")
    refused(["help", "frob"], "'frob'")
    refused(["help", "run", "frob"], "'frob'")
    refused(["--version", "frob"], "'frob'")
    for command in ("run", "info", "explain", "bench", "tune"):
        refused([command], "a MODEL is needed")
        refused([command, two, neg], neg)
    refused(["embed"], "MODEL_DIR")
    refused(["devices", "x"], "'x'")
    refused(["devices", "--verbose", "--json"], "--verbose does nothing beside --json")
    refused(["devices", "--no-calibrate"], "--no-calibrate does nothing without --verbose")
    refused(["run", two, "--frob"], "'--frob'")
    refused(["run", two, "-x"], "'-x'")
    refused(["run", two, "--phase", "plan"], "'--phase")
    refused(["run", two, "--json=1"], "--json takes no value")
    refused(["run", two, "--repeat"], "--repeat needs a value")
    for bad in ("x", "-1", "", "1x", "99999999999999999999"):
        refused(["run", two, "--repeat", bad], f"'{bad}'")
        refused(["run", two, "--seed", bad], f"'{bad}'")
    for command in ("run", "bench"):
        refused([command, two, "--repeat", "100001"], "at most 100000", "'100001'")
        refused([command, two, "--rank", "99999999999"], "at most", "'99999999999'")
    refused(["run", two, "--target", "h200"], "--target does nothing without --interpret")
    refused(["run", two, "--interpret", "--target", "h200", "--device", "0"], "--target does nothing beside --device")
    refused(["explain", two, "--target", "h200", "--device", "0"], "--target does nothing beside --device")
    refused(["run", two, "--interpret", "--profile"], "--profile does nothing beside --interpret")
    refused(["run", two, "--interpret", "--repeat", "3"], "--repeat does nothing beside --interpret")
    refused(["explain", two, "--target", "h200", "--json", "--phase", "plan"], "--phase does nothing beside --json")
    refused(["explain", two, "--target", "h200", "--json", "--kernel", "0"], "--kernel does nothing beside --json")
    for phase in ("graph", "rewrite", "target"):
        refused(["explain", two, "--target", "h200", "--phase", phase, "--kernel", "0"], f"'{phase}'", "'0'")
    refused(["run", two, "--objective", "best"], "time, dispatches or memory, not 'best'")
    for option in ("max-memory", "max-fused-ops", "max-fused-products", "min-gain"):
        refused(["run", two, f"--{option}", "0"], f"--{option} is at least 1, '0' was given")
        refused(["explain", two, f"--{option}", "-1"], f"--{option}: '-1' is no number")
    refused(["explain", two, "--min-gain", "100"], "--min-gain is at most 99")
    refused(["explain", f"{SOURCE}/tests/graphs/mha.smg", "--target", "h200", "--max-memory", "9"],
            "'mha'", "9 bytes", "16777216 bytes are the least")
    refused(["run", two] + ["--dim", "n=4"] * 2, "n twice")
    refused(["run", two] + ["--input", "x=zeros"] * 2, "x twice")
    refused(["run", two] + [w for i in range(20) for w in ("--dim", f"n{i}=4")], "more than 16")
    refused(["explain", two, "--target", "frob"], "'frob'", "h200")
    refused(["explain", two, "--target", binary], binary)
    refused(["explain", two, "--target", empty_dir], empty_dir)
    refused(["explain", two, "--target", write(f"{work}/bad.target", "max_invocations = -5\n")], "max_invocations")
    refused(["explain", two, "--target", "careful", "--phase", "frob"], "'frob'", "kernel")
    for beside in (["--phase", "plan"], ["--kernel", "0"], ["--prices"]):
        refused(["explain", two, "--target", "h200", "--report", *beside], f"--report does nothing beside {beside[0]}")
    for beside in (["--phase", "plan"], ["--json"], ["--report"]):
        refused(["explain", two, "--target", "h200", "--dot", *beside], f"--dot does nothing beside {beside[0]}")
    refused(["explain", two, "--target", "h200", "--dot", "--kernel", "k9"], "'k9'")
    for bad in ("k9", "-1", "9", "99999999999999999999", ""):
        refused(["explain", two, "--target", "careful", "--kernel", bad], f"'{bad}'")


def help_texts():
    """Every option that a command takes stands in its help, and every one of its help is taken."""
    commands = ("devices", "info", "run", "compile", "explain", "bench", "tune", "embed")
    texts = {command: smg("help", command).stdout for command in commands}
    known = sorted(set(re.findall(r"--[a-z-]+", "".join(texts.values()))))
    report.check(len(known) > 15, f"options: {known}")
    for command in commands:
        usage = texts[command].split("\n\n")[0]
        for option in known[:: 8 if SANITIZED else 1]:
            taken = "takes no option" not in smg(command, option).stderr
            told = re.search(option + r"\b(?!-)", usage) is not None
            report.check(taken == told, f"smg help {command} and {option}: taken {taken}, told {told}")
        done = smg(command, "--help")
        report.check(done.returncode == 0 and done.stdout == texts[command] and done.stderr == "", f"{command} --help")


    asked = set()
    for base, _, names in os.walk(f"{SOURCE}/src"):
        for name in names:
            if name.endswith(".c"):
                asked |= set(re.findall(r'"(SMG_[A-Z_]+)"', read(f"{base}/{name}").decode()))
    told = smg("help").stdout
    report.check(len(asked) > 3 and all(f"  {name} " in told for name in asked), f"smg help lacks some of {asked}")


def parts():
    """Files of a model that are not the model."""
    for name in ("model.safetensors", "config.json"):
        for command in ("run", "info"):
            refused([command, f"{SOURCE}/tests/models/hf-bert-tiny/{name}"], name, "directory")


def documents():
    """What is printed with --json can be parsed, for each kind of model, and has what scripts look for."""
    strict = {"parse_constant": lambda word: report.check(False, f"{word} is no JSON")}
    for model in (two, neg, f"{SOURCE}/tests/models/hf-bert-tiny"):
        for words, keys in ((["info"], ("graph", "inputs", "outputs", "sizes")),
                            (["explain", "--target", "h200"], ("graph", "target", "kernels", "guards")),
                            (["explain", "--target", "h200", "--report"], ("planned", "apart", "kernels", "as_one", "joinable")),
                            (["run", "--interpret", "--check"], ("graph", "sizes", "check", "kernels"))):
            if os.path.isdir(model) and (words[0] == "run" or (SANITIZED and words[0] == "explain")):
                continue  # the interpreter takes its time
            done = smg(words[0], model, *words[1:], "--json")
            row = json.loads(done.stdout or "{}", **strict)
            report.check(done.returncode == 0 and all(key in row for key in keys), f"{words} {model}: {done.stderr} {row}")
    report.check(json.loads(smg("info", neg, "--json").stdout)["sizes"]["n"]["max"] is None, "no bound is null")
    report.check(json.loads(smg("info", two, "--json").stdout)["sizes"]["n"]["max"] == 16, "a bound is a number")
    done = smg("run", "--interpret", "--json", two, "--max-dim", "n=3")
    report.check(json.loads(done.stdout)["sizes"] == {"n": 3}, f"a maximum bounds what nobody asked for: {done.stderr}")


def spread(row, count):
    report.check(row["n"] == count and 0 <= row["min_us"] <= row["median_us"] <= row["p95_us"], f"not a spread: {row}")


def measured_by(row):
    devices = json.loads(smg("devices", "--json").stdout)
    report.check(any((row["device"], row["driver"]) == (d["name"], d["driver"]) for d in devices)
                 and smg("--version").stdout == f"smg {row['version']}\n", f"measured by {row}")


def bench():
    done = smg("bench", two, "--repeat", "2", "--no-calibrate", "--check", "--json")
    row = json.loads(done.stdout or "{}")
    report.check(done.returncode == 0 and row["rounds"] == 2 and row["fused"]["pass"] and row["unfused"]["pass"],
                 f"bench: {done.stderr} {row}")
    spread(row["fused"], 2)
    spread(row["unfused"], 2)
    measured_by(row)
    done = smg("run", two, "--repeat", "40", "--profile", "--no-calibrate", "--json")
    row = json.loads(done.stdout or "{}")
    measured_by(row)
    spread(row["time"], 40)
    rounds = row["profile"][0]["n"] // row["profile"][0]["calls"]
    report.check(rounds > 1, f"profile of {rounds} runs")
    for kernel in row["profile"]:
        spread(kernel, kernel["calls"] * rounds)
    bare = [name for part in (row["memory"], *row["profile"]) for name, value in part.items()
            if isinstance(value, float) and not name.endswith(("_us", "_seconds", "_bytes", "_share"))]
    report.check(bare == [], f"numbers without a unit in the name: {bare}")
    trace()
    for words in (["run", two, "--repeat", "3", "--profile"], ["bench", two, "--repeat", "3"]):
        done = smg(*words, "--no-calibrate")
        report.check(all(word in done.stdout for word in ("min ", "median ", "p95 ", ", driver ", ", smg 0")), done.stdout)
    done = smg("bench", two, "--repeat", "2", "--no-calibrate", "--dim", "n=4", "--input", "x=zeros")
    report.check(done.returncode == 0 and "fused is" in done.stdout and "n=4" in done.stdout, f"bench: {done.stderr}")
    done = smg("bench", two, "--repeat", "2", "--no-calibrate", "--dim", "n=2..16", "--json")
    row = json.loads(done.stdout or "{}")
    report.check(done.returncode == 0 and row["sizes"] == {"n": 16} and row["sizes_from"] == {"n": 2}
                 and row["fused"]["bind_us"] > 0 and row["unfused"]["bind_us"] > 0, f"bench of a range: {done.stderr} {row}")
    done = smg("bench", two, "--ranks", "3", "--repeat", "2", "--no-calibrate", "--check", "--json")
    row = json.loads(done.stdout or "{}")
    report.check(done.returncode == 0 and [r["rank"] for r in row["ranks"]] == [0, 1, 2] and row["fastest"] < 3
                 and all(r["pass"] and r["kernels"] > 0 for r in row["ranks"]), f"ranks: {done.stderr} {row}")
    for rank in row["ranks"]:
        spread(rank, 2)
    measured_by(row)
    done = smg("bench", two, "--ranks", "2", "--repeat", "2", "--no-calibrate")
    report.check(done.returncode == 0 and "fastest of 2" in done.stdout, f"ranks: {done.stdout} {done.stderr}")
    refused(["bench", two, "--ranks", "2", "--rank", "1"], "--ranks does nothing beside --rank")
    tune()
    beyond()
    done = smg("run", two, "--check", "--no-calibrate", "--dim", "n=2..16")
    report.check(done.returncode == 0 and "n=2..16" in done.stdout and "PASS" in done.stdout, f"a range: {done.stderr}")
    wrong = npy("nan", "<f4", "(2,)", struct.pack("<2f", float("nan"), 1))
    done = smg("run", two, "--no-calibrate", "--json", "--check", "--input", f"x={wrong}")
    report.check("NaN" not in done.stdout and "nan" not in done.stdout and json.loads(done.stdout) is not None, done.stdout)


def beyond():
    """What lies between unfused kernels is more than the CPU driver binds: the fused plan is measured all the same, and
    tuned without cuts that leave it there."""
    outer = graph("outer", "dim n max 20000", "x = input f32[n, 1]", "y = input f32[1, n]", "p = mul(x, y) : f32[n, n]",
                  "z = sum(p) axis=1", "output z = z")
    words = [outer, "--no-calibrate", "--dim", "n=6000"]
    done = smg("bench", *words, "--repeat", "1", "--json")
    row = json.loads(done.stdout or "{}")
    report.check(done.returncode == 0 and row["fused"]["n"] == 1, f"bench: {done.stderr} {row}")
    if "llvmpipe" not in row.get("device", ""):
        return
    report.check("'p' takes 144000000 bytes" in row["unfused"]["missing"], f"bench: {row}")
    done = smg("bench", *words, "--repeat", "1")
    report.check(done.returncode == 0 and "the unfused plan does not fit the device: 'p' takes" in done.stdout, done.stdout)
    refused(["run", *words, "--unfused"], "'p' takes 144000000 bytes", "binds at most")
    done = smg("tune", *words, "--ranks", "1", "-o", f"{work}/outer.tuning", "--json")
    report.check(done.returncode == 0 and json.loads(done.stdout or "{}").get("kernels"), f"tune: {done.stderr}")


def trace():
    """Kernels of a run follow each other on the device's track, and end when the host's call does."""
    path = f"{work}/trace.json"
    done = smg("run", f"{SOURCE}/tests/graphs/mha.smg", "--no-calibrate", "--dim", "b=2", "--dim", "s=16", "--profile",
               "--trace", path, "--json")
    row = json.loads(done.stdout or "{}")
    events = json.loads(read(path))["traceEvents"]
    runs = {e["args"]["run"]: e for e in events if e["ph"] == "X" and e["name"] == "run"}
    report.check(done.returncode == 0 and len(runs) == row["profile"][0]["n"] // row["profile"][0]["calls"], f"trace: {done.stderr}")
    for number, run in runs.items():
        kernels = [e for e in events if e["ph"] == "X" and e["tid"] != run["tid"] and e["args"]["run"] == number]
        ends = [e["ts"] + e["dur"] for e in kernels]
        good = len(kernels) == row["kernels"] and all(abs(end - e["ts"]) < 0.01 for end, e in zip(ends, kernels[1:]))
        good = good and abs(ends[-1] - run["ts"] - run["dur"]) < 0.01 and kernels[0]["ts"] >= run["ts"]
        report.check(good and [e["name"] for e in kernels] == [f"k{i}" for i in range(len(kernels))], f"run {number}: {run} {kernels}")
    refused(["run", two, "--trace", path], "--trace does nothing without --profile")
    refused(["run", two, "--no-calibrate", "--profile", "--trace", f"{work}/nowhere/t.json"], "nowhere/t.json")


def interrupt():
    """Ctrl-C ends the measuring, not the command. What was measured by then is kept, whatever was confirmed of it."""
    kept = f"{work}/interrupted.tuning"
    model = [f"{SOURCE}/tests/graphs/mlp.smg", "--no-calibrate"]
    for seconds in (2, 4, 8, 16):  # until a kernel was measured, on a slow machine
        with subprocess.Popen([SMG, "tune", *model, "-o", kept, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "SMG_VALIDATION": "0"}) as run:
            time.sleep(seconds)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=120)
        row = json.loads(out or b"{}")
        report.check(run.returncode == 0 and row["stopped"] and row["kept"] == os.path.exists(kept), f"Ctrl-C: {run.returncode} {err} {row}")
        if row.get("kernels"):
            break
    lines = read(kept).decode().split("\n") if os.path.exists(kept) else []
    schedules = [line for line in lines if line.startswith(("passes ", "beaten "))]
    report.check(row["kernels"] and len(schedules) >= sum(k["tried"] for k in row["kernels"]), f"kept: {row} {lines}")
    done = smg("explain", *model, "--device", "0", "--phase", "search", "--tuning", kept)
    shown = re.findall(r"^ +\d+ +[\d.]+ +[\d.]+ +[\d.]+  [0-9a-f]{16}", done.stdout, re.M)
    report.check(done.returncode == 0 and len(shown) > len(row["kernels"]), f"all that was measured is shown: {done.stdout} {done.stderr}")


def tune():
    kept = f"{work}/kept.tuning"
    words = [two, "--no-calibrate", "--dim", "n=16"]
    done = smg("tune", *words, "--ranks", "3", "-o", kept, "--json")
    row = json.loads(done.stdout or "{}")
    report.check(done.returncode == 0 and row["sizes"] == {"n": 16} and row["kernels"] and row["failed"] == 0
                 and all(0 <= k["rank"] < k["tried"] <= 3 and 0 < k["fastest_us"] <= k["price_us"] for k in row["kernels"]),
                 f"tune: {done.stderr} {row}")
    measured_by(row)
    report.check(row["kept"], f"tune: {row}")
    if row["taken"]:  # not where a busy machine made it slower
        done = smg("explain", *words, "--device", "0", "--tuning", kept)
        report.check(done.returncode == 0 and "because measured: " in done.stdout, f"measured: {done.stdout} {done.stderr}")
        for words_of in (["run", *words, "--check"], ["bench", *words, "--repeat", "2", "--check"]):
            done = smg(*words_of, "--tuning", kept)
            report.check(done.returncode == 0 and "PASS" in done.stdout, f"tuned: {done.stdout} {done.stderr}")
        done = smg("explain", two, "--target", "careful", "--tuning", kept)
        report.check(done.returncode == 0 and "measured" not in done.stdout and "of another device" in done.stderr,
                     f"another device's: {done.stdout} {done.stderr}")
        refused(["run", *words, "--tuning", write(f"{work}/cut.tuning", read(kept)[:-9])], "cut.tuning is no tuning file")
    refused(["run", *words, "--tuning", binary], "binary.smg is no tuning file")
    refused(["run", *words, "--tuning", f"{work}/none.tuning"], "none.tuning", "No such file")
    refused(["tune", *words, "--ranks", "1001"], "--ranks is at most 1000")
    for bad in ("0", "-1s", "x", "3h", "30sec", "", "nan"):
        refused(["tune", *words, "--time", bad], "--time takes seconds or minutes", f"'{bad}'")
    done = smg("tune", *words, "--time", "0.5s", "-o", f"{work}/short.tuning", "--json")
    row = json.loads(done.stdout or "{}")
    known = [us is None or us > 0 for us in (row.get("untuned_us", 0), row.get("tuned_us", 0))]
    report.check(done.returncode == 0 and not row["stopped"] and row["kernels"] and all(known),
                 f"half a second: {done.stderr} {row}")
    interrupt()
    refused(["bench", *words, "--ranks", "2", "--tuning", kept], "--tuning does nothing beside --ranks")
    refused(["run", *words, "--rank", "2", "--tuning", kept], "--tuning does nothing beside --rank")
    refused(["tune", *words, "-o", f"{work}/nowhere/x.tuning", "--ranks", "1"], "nowhere/x.tuning")
    refused(["tune", *words, "--rates"], "--rates does nothing beside --no-calibrate")
    refused(["run", *words, "--nominal"], "--nominal does nothing beside --no-calibrate")
    refused(["run", two, "--rates"], "smg run takes no option '--rates'")
    done = smg("tune", two, "--dim", "n=16", "--ranks", "1", "--rates", "-o", kept)
    report.check(done.returncode == 0 and "rates stay as they are: " in done.stdout and "are needed" in done.stdout,
                 f"rates of two kernels: {done.stdout} {done.stderr}")
    done = smg("tune", two, "--no-calibrate", "--ranks", "2")
    report.check(done.returncode == 0 and "a run takes" in done.stdout, f"tune: {done.stdout} {done.stderr}")


def files():
    refused(["run", f"{work}/missing.smg"], "missing.smg", "No such file")
    refused(["run", ""], "''")
    refused(["run", f"{two}/x"], "Not a directory")
    refused(["run", empty_dir], "config.json")
    refused(["info", empty_dir], "config.json")
    refused(["run", write(f"{work}/empty.smg", "")], "has no output")
    refused(["run", binary], "binary.smg:1")
    refused(["run", write(f"{work}/noise.smg", bytes(range(1, 256)) * 40)], "noise.smg:1")
    refused(["run", "/dev/zero"], "'/dev/zero'", "bytes")
    if os.geteuid() != 0:
        locked = graph("locked", "x = input f32[1]")
        os.chmod(locked, 0)
        refused(["run", locked], "Permission denied")
    refused(["embed", two, "text"], "is not a model directory")
    refused(["embed", f"{SOURCE}/tests/models/hf-bert-tiny", "text"], "no pooling")


def graphs():
    rows = {
        "cycle": (["y = neg(y)", "output y = y"], ":2:", "no cycles"),
        "unknown": (["x = input f32[4]", "y = frob(x)", "output y = y"], ":3:", "frob"),
        "arity": (["x = input f32[4]", "y = add(x)", "output y = y"], ":3:", "2 operands, got 1"),
        "no_output": (["x = input f32[4]", "y = neg(x)"], "has no output"),
        "zero": (["x = input f32[0]", "output y = x"], ":2:", "0"),
        "negative": (["x = input f32[-4]", "output y = x"], ":2:"),
        "overflow": (["x = input f32[4611686018427387904, 4]", "output y = x"], ":2:", "64 bits"),
        "rank": (["x = input f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "output y = x"], ":2:"),
        "type": (["x = input f33[4]", "output y = x"], ":2:", "f33"),
        "max": (["dim n max 0", "x = input f32[n]", "output y = x"], ":2:", "0"),
        "shapes": (["x = input f32[4]", "z = input f32[5]", "y = add(x, z)", "output y = y"], ":4:", "4", "5"),
        "twice": (["x = input f32[4]", "x = input f32[5]", "output y = x"], ":3:", "x"),
        "axis": (["x = input f32[4]", "y = sum(x) axis=1", "output y = y"], ":3:", "axis"),
        "number": (["x = input i32[4]","c = fill 3000000000 : i32[]", "y = add(x, c)", "output y = y"], ":3:", "3000000000 is no i32"),
        "fraction": (["x = input i64[4]", "c = fill 1.5 : i64[]", "y = add(x, c)", "output y = y"], ":3:", "1.5 is no i64"),
        "label": (["x = input f32[4, 4]", 'y = contract(x, x) "ab,cd->ad"', "output y = y"], ":3:"),
    }
    for name, (lines, *parts) in rows.items():
        path = graph(name, *lines)
        for command in (["run", path], ["info", path], ["explain", path, "--target", "h200"]):
            refused(command, *parts)


def sizes():
    for bad in ("n", "n=", "=4", "n=x", "n=-1", "n=4x", "n=99999999999999999999"):
        refused(["run", neg, "--dim", bad])
        refused(["run", neg, "--max-dim", bad])
    refused(["run", neg, "--dim", "n=0"], "n is 0")
    for bad in ("n=4..", "n=..4", "n=1..2..3", "n=a..4"):
        refused(["run", neg, "--dim", bad], "is no number")
    refused(["run", neg, "--dim", "n=5..4"], "5..4 is no range")
    refused(["run", neg, "--dim", "n=0..4"], "0..4 is no range")
    refused(["run", two, "--dim", "n=1..17"], "n is 17", "16")
    refused(["run", neg, "--max-dim", "n=1..4"], "is no number")
    refused(["run", neg, "--interpret", "--dim", "n=1..4"], "n=1..4", "--interpret")
    refused(["explain", neg, "--target", "h200", "--dim", "n=1..4"], "n=1..4", "runs nothing")
    refused(["run", neg, "--dim", "m=4"], "'m'", "n")
    refused(["run", neg, "--max-dim", "m=4"], "'m'", "n")
    refused(["run", neg, "--dim", "n=9223372036854775807"], "9223372036854775807")
    refused(["run", two, "--dim", "n=17"], "17", "16")
    refused(["run", two, "--max-dim", "n=17"], "17", "16")
    refused(["run", two, "--max-dim", "n=4", "--dim", "n=5"], "5", "4")
    refused(["explain", two, "--target", "h200", "--dim", "n=17"], "17", "16")
    four = graph("four", "x = input f32[n, n, n, n]", "y = neg(x)", "output y = y")
    if VULKAN:
        refused(["run", four, "--dim", "n=100000"], "'x'", "elements")
    refused(["run", four, "--interpret", "--dim", "n=100000"], "'x'", "elements")


def inputs(run):
    f4 = npy("f4", "<f4", "(4,)", struct.pack("<4f", 1, 2, 3, 4))
    floats = read(f4)
    out = f"{work}/out.npy"
    refused([*run, two, "--input", "z=zeros"], "'z'", "x")
    refused([*run, two, "--input", "x=missing.npy"], "missing.npy")
    refused([*run, two, "--input", f"x={empty_dir}"], empty_dir)
    refused([*run, two, "--input", "x="], "x=")
    refused([*run, two, "--input", "x=" + npy("ints", "<i4", "(4,)", bytes(16))], "'x'", "I32", "f32")
    refused([*run, two, "--input", "x=" + npy("matrix", "<f4", "(2, 2)", bytes(16))], "'x'", "1 axes", "2")
    refused([*run, two, "--input", "x=" + npy("none", "<f4", "(0,)", b"")], "'x'", "0")
    refused([*run, two, "--input", "x=" + npy("long", "<f4", "(17,)", bytes(68))], "'x'", "17", "16")
    refused([*run, two, "--input", "x=" + npy("short", "<f4", "(400,)", bytes(16))], "1600", "16")
    refused([*run, two, "--input", "x=" + npy("object", "|O", "(4,)", bytes(16))], "object.npy")
    refused([*run, two, "--input", f"x={f4}", "--dim", "n=5"], "4", "5")
    lengths = [*run, mask, "--dim", "b=3", "--dim", "s=7", "--input"]
    for good in ("m=lengths:7,0,3", "n=lengths:9,0,3"):
        report.check(smg(*lengths, good).returncode == 0, f"smg run --input {good} fails")
    refused([*lengths, "m=lengths:7,8,3"], "'m'", "row 1", "length 8", "7")
    refused([*lengths, "m=lengths:7,3,-2"], "'m'", "row 2", "-2")
    refused([*lengths, "n=lengths:7,3,-2"], "'n'", "row 2", "-2")
    refused([*lengths, "m=lengths:7,3"], "'m'", "3 rows", "2 lengths")
    refused([*lengths, "m=lengths:7,3,1,1"], "'m'", "3 rows", "4 lengths")
    refused([*lengths, "f=lengths:7,3,1"], "'f'", "f32")
    for bad in ("", "7,,3", "7,3,x", "7;3;1", "7,3,1,", "99999999999999999999,1,1"):
        refused([*lengths, f"m=lengths:{bad}"], "m=lengths:", "is no length")
    for cut in (0, 5, 9, 20, len(floats) - 1):
        refused([*run, two, "--input", "x=" + write(f"{work}/cut.npy", floats[:cut])], "cut.npy")
    ids = npy("ids", "<i8", "(3,)", struct.pack("<3q", 1, 2, 6))
    named = ["6"] if run[-1] == "--interpret" else ["input 'ids', element 2", "index 6 outside its table [0, 6)"]
    refused([*run, table, "--input", f"ids={ids}", "--output", f"y={out}"], *named)
    ids = npy("ids", "<i8", "(3,)", struct.pack("<3q", 1, -7, 0))
    refused([*run, table, "--input", f"ids={ids}", "--output", f"y={out}"], "outside")
    ids = npy("ids", "<i8", "(3,)", struct.pack("<3q", 1, 1 << 40, 0))
    refused([*run, table, "--input", f"ids={ids}", "--output", f"y={out}"], str(1 << 40))
    refused([*run, two, "--output", f"q={out}"], "'q'")
    refused([*run, two, "--output", f"y={work}/out.npz"], f"--output y={work}/out.npz", ".npy")
    refused([*run, two, "--output", "y=/nosuch/out.npy"], "/nosuch/out.npy")
    refused([*run, two, "--output", f"y={empty_dir}"], empty_dir)
    refused([*run, two, "--output", f"y={out}", "--output", f"q={out}"], "'q'")
    left = [name for name in os.listdir(work) if name.startswith("out") or name.endswith(".tmp")]
    report.check(left == [], f"half-written: {left}")
    half = graph("half", "x = input f16[2, 2]", "y = neg(x)", "output y = y")
    done = smg(*run, half, "--input", "x=" + npy("f2", "<f2", "(2, 2)", struct.pack("<4e", 1, -2, 0.5, 4)), "--output",
               f"y={out}")
    report.check(done.returncode == 0 and read(out)[-8:] == struct.pack("<4e", -1, 2, -0.5, -4), f"f16: {done.stderr}")
    os.remove(out)
    good = smg(*run, two, "--input", f"x={f4}", "--check", "--output", f"y={out}")
    report.check(good.returncode == 0 and os.path.exists(out), f"a good run: {good.stderr}{good.stdout}")
    os.remove(out)


def overflows(run):
    """What does not fit its type: integers wrap as in every kernel, floats are infinite; neither is an error of a run."""
    huge = ["c = fill 2000000001 : i32[]", "y = add(x, c)", "d = mul(y, y)", "e = square(y)", "f = mul(d, e)",
            "s = sum(y) axis=0", "p = reduce_prod(y) axis=0", "h = mul(c, c)", "k = sub(h, x)"]
    rows = {"wrap": ["x = input i32[300]", *huge, *(f"output {o} = {o}" for o in "defspk")],
            "large": ["x = input f32[64]", "c = fill 1e30 : f32[]", "y = mul(x, c)", "z = mul(y, c)", "output z = z"],
            "small": ["x = input f32[64]", "c = fill 1e-30 : f32[]", "y = mul(x, c)", "z = mul(y, c)", "output z = z"],
            "half": ["x = input f32[64]", "c = fill 70000 : f32[]", "y = mul(x, c)", "z = cast(y) : f16[64]",
                     "output z = z"]}
    for name, lines in rows.items():
        done = smg(*run, graph(name, *lines), "--check")
        report.check(done.returncode == 0 and "PASS" in done.stdout and "mean inf" not in done.stdout,
                     f"{name}: {done.stderr}{done.stdout}")


def verbose_devices():
    """The facts of a device without a model are those that explain knows, and a target that explain takes."""
    done = smg("devices", "--verbose", "--no-calibrate")
    count = len(json.loads(smg("devices", "--json").stdout))
    report.check(done.returncode == 0 and done.stdout.count("subgroup_size = ") == count, f"{done.stderr}{done.stdout}")
    blocks = done.stdout.split("\n\n")
    for number in range(count):
        facts = smg("explain", two, "--device", str(number), "--no-calibrate", "--phase", "target").stdout
        told = blocks[number].split("\n", 1)
        report.check(told[0].startswith(f"# {number}  ") and told[1].strip() == facts.strip() != "",
                     f"device {number}: {told[0]} and explain differ:\n{told[1]}\n{facts}")
        path = write(f"{work}/device.target", blocks[number])
        again = smg("explain", two, "--target", path, "--phase", "target").stdout
        report.check(again.strip() == facts.strip(), f"read back:\n{again}\n{facts}")


def devices():
    verbose_devices()
    refused(["run", two, "--device", "frob"], "'frob'")
    refused(["run", two, "--device", "77"], "77")
    refused(["explain", two, "--device", "frob"], "'frob'")
    refused(["run", neg, "--dim", "n=2147483647", "--no-calibrate"], "'x'", "8589934592")


def model_dirs():
    """Copies of a small directory with one thing wrong."""
    good = f"{SOURCE}/tests/models/hf-bert-tiny"
    weights = read(f"{good}/model.safetensors")
    config = json.loads(read(f"{good}/config.json"))
    length = struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8:8 + length])
    first = next(name for name in header if name != "__metadata__")

    def case(parts, new_config=None, new_weights=None, new_header=None, keep_weights=True):
        path = f"{work}/model"
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        data = new_config if isinstance(new_config, (str, bytes)) else json.dumps({**config, **(new_config or {})})
        write(f"{path}/config.json", data)
        if new_header is not None:
            text = json.dumps(new_header).encode()
            new_weights = struct.pack("<Q", len(text)) + text + weights[8 + length:]
        if keep_weights:
            write(f"{path}/model.safetensors", weights if new_weights is None else new_weights)
        refused(["run", path, "--no-calibrate"], *parts)
        refused(["info", path], *parts)

    def changed(**fields):
        return {**header, first: {**header[first], **fields}}

    case(["model_type", "'frob'", "bert"], {"model_type": "frob"})
    case(["has no model_type"], {"model_type": ""})
    case(["hidden_act 'frob'"], {"hidden_act": "frob"})
    case(["hidden_size"], {"hidden_size": -1})
    case(["hidden_size"], {"hidden_size": "many"})
    case(["num_attention_heads"], {"num_attention_heads": 7})
    case(["num_hidden_layers"], {"num_hidden_layers": 1 << 40})
    case(["config.json"], "")
    case(["config.json"], "{")
    case(["config.json"], b'{"model_type": "\xff"}')
    case(["config.json"], "[]")
    case(["safetensors"], keep_weights=False)
    for cut in (0, 4, 8, 8 + length // 2, 8 + length, len(weights) // 2, len(weights) - 1):
        case(["safetensors"], new_weights=weights[:cut])
    case(["safetensors"], new_weights=struct.pack("<Q", 1 << 62) + weights[8:])
    case([first], new_header={name if name != first else "frob": row for name, row in header.items()})
    case(["belong to no tensor"], new_header={name: row for name, row in header.items() if name != first})
    case([first], new_header=changed(data_offsets=[0, 1 << 62]))
    case([first], new_header=changed(data_offsets=[8, 4]))
    case([first], new_header=changed(dtype="F99"))
    case([first], new_header=changed(shape=header[first]["shape"][::-1] + [1]))
    case([first], new_header=changed(shape=[1 << 40, 1 << 40]))


def bundles():
    """A bundle is written whole or not at all; what is no bundle, or damaged, is told."""
    out = f"{work}/two.smgb"
    compiled = ["compile", two, "-o", out, "--target"]
    refused(["compile", two], "-o FILE")
    refused(["compile", two, "-o"], "-o needs a value")
    refused(["run", two, "-o", out], "takes no option '-o'")
    refused(compiled + ["h200,frob"], "'frob'", "h200")
    refused(compiled + ["h200,,careful"], "a name is empty")
    refused(compiled + ["h200,h200"], "'h200' is given twice")
    refused(compiled + ["h200,careful", "--precision", "f16"], "target 'careful'", "16-bit storage")
    refused(compiled + ["h200", "--dim", "frob=3"], "'frob'")
    refused(compiled + ["h200", "--precision", "f8"], "'f8'", "f32, f16 and bf16")
    refused(["compile", two, "-o", f"{work}/nowhere/two.smgb", "--target", "h200"], "nowhere")
    report.check(not os.path.exists(out), "a refused bundle was written")
    report.check(not [name for name in os.listdir(work) if name.endswith(".tmp")], "something half-written stays")
    done = smg(*compiled, "h200,careful")
    report.check(done.returncode == 0 and done.stdout == "" and done.stderr == "", f"smg compile: {done.stderr}")
    whole = read(out)
    told = json.loads(smg("info", out, "--json").stdout)
    report.check([row["name"] for row in told["classes"]] == ["h200", "careful"], f"classes: {told['classes']}")
    report.check("input    x f32[n]" in smg("info", out).stdout, "smg info of a bundle has no input x")
    for command in ("explain", "bench", "compile"):
        refused([command, out] + (["-o", f"{work}/other.smgb"] if command == "compile" else []), "is a bundle")
    for option in (["--check"], ["--precision", "f16"], ["--max-dim", "n=8"], ["--objective", "time"]):
        if VULKAN:
            refused(["run", out] + option, f"{option[0]} does nothing for a bundle")
    for cut in (9, 63, 64, 1000, len(whole) - 1):
        refused(["info", write(f"{work}/cut.smgb", whole[:cut])], "damaged")
    for version in (1, 3):
        changed = whole[:8] + bytes([version]) + whole[9:]
        refused(["info", write(f"{work}/version.smgb", changed)], f"version {version}")
    refused(["info", write(f"{work}/order.smgb", whole[:12] + b"\1\2\3\4" + whole[16:])], "byte order")
    for at in range(100, len(whole), len(whole) // 40):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
        if whole[at:at + 1] != b"\0":
            refused(["info", write(f"{work}/flipped.smgb", changed)], "flipped.smgb")


def devices_of_bundles():
    """A device below every class is told what it lacks; weights are prepared where the device can, and give the same."""
    out, ready = f"{work}/mha.smgb", f"{work}/ready.smgb"
    model = f"{SOURCE}/tests/graphs/mha.smg"
    report.check(smg("compile", model, "-o", out, "--target", "h200,navi31").returncode == 0, "mha is not compiled")
    driver = json.loads(smg("devices", "--json").stdout)[0]
    if driver["type"] == "cpu":
        refused(["run", out], "has no class for", "h200 lacks ", "navi31 lacks ")
        refused(["compile", model, "-o", ready, "--target", "h200", "--prepared"], "target 'h200'", "cannot be prepared on")
        report.check(not os.path.exists(ready), "a refused bundle was written")
    results = []
    for words in ([], ["--prepared"], ["--prepared", "--device", "0"]):
        done = smg("compile", model, "-o", ready, "--no-calibrate", *words)
        ran = smg("run", ready, "--dim", "b=2", "--dim", "s=5", "--output", f"y={work}/{len(results)}.npy")
        report.check(done.returncode == 0 and ran.returncode == 0, f"compile {words}: {done.stderr}{ran.stderr}")
        report.check(("ready as they are" in smg("info", ready).stdout) == (words != []), f"compile {words}: its weights")
        results.append(read(f"{work}/{len(results)}.npy"))
    report.check(results[0] == results[1] == results[2], "prepared weights give other bits")


def damaged_weights():
    """A bit of a weight is told by who runs the model, with the weight's name."""
    out = f"{work}/table.smgb"
    report.check(smg("compile", table, "-o", out, "--target", "careful").returncode == 0, "a table is not compiled")
    whole = read(out)
    report.check(smg("run", out).returncode == 0, "a bundle with a table does not run")
    for at in (1, 50, 96):  # from the end: 6 x 4 numbers
        changed = whole[:-at] + bytes([whole[-at] ^ 4]) + whole[len(whole) - at + 1:]
        refused(["run", write(f"{work}/flipped.smgb", changed)], "flipped.smgb", "weights 't'", "what was written")


def hash_bytes(data):
    """smg_hash_bytes, of a class of a bundle."""
    most, factor = (1 << 64) - 1, 0xc6a4a7935bd1e995
    word = 0x9e3779b97f4a7c15 ^ (len(data) * factor & most)
    for at in range(0, len(data) - 7, 8):
        value = int.from_bytes(data[at:at + 8], "little") * factor & most
        value = (value ^ value >> 47) * factor & most
        word = (word ^ value) * factor & most
    if len(data) % 8:
        word = (word ^ int.from_bytes(data[len(data) & ~7:], "little")) * factor & most
    word = (word ^ word >> 47) * factor & most
    return word ^ word >> 47


def kernels():
    """Kernels that are no valid SPIR-V, in a class whose hash is right, get to no driver."""
    out = f"{work}/kernels.smgb"
    report.check(smg("compile", neg, "-o", out, "--target", "careful").returncode == 0, "a negation is not compiled")
    whole = read(out)
    begin = whole.index(b"SMGBNDL\0") + 32
    count, right = struct.unpack("<QQ", whole[begin - 16:begin])
    report.check(hash_bytes(whole[begin:begin + count]) == right, "the hash of a class is another one")
    told = 0
    for at in range(begin + count // 3, begin + count - 200, count // 24):
        changed = whole[begin:at] + bytes([whole[at] ^ 1]) + whole[at + 1:begin + count]
        head = whole[:begin - 8] + struct.pack("<Q", hash_bytes(changed))
        path = write(f"{work}/changed.smgb", head + changed + whole[begin + count:])
        done = smg("info", path)
        if "invalid SPIR-V" not in done.stderr:
            continue
        told += 1
        report.refusal(["info", path], done, "changed.smgb", "class 'careful': kernel '")
        if has_device():
            refused(["run", path, "--dim", "n=2"], "changed.smgb", "class 'careful': kernel '", "invalid SPIR-V")
    report.check(told > 5, f"{told} of 24 changes are told")


arguments()
help_texts()
bundles()
kernels()
parts()
documents()
files()
graphs()
sizes()
inputs(["run", "--interpret"])
overflows(["run", "--interpret"])
model_dirs()
if has_device():
    inputs(["run", "--no-calibrate"])
    overflows(["run", "--no-calibrate"])
    devices()
    bench()
    devices_of_bundles()
    damaged_weights()
elif VULKAN and os.environ.get("SMG_REQUIRE_DEVICE"):
    report.check(False, "there is no device")
sys.exit(report.finish())
