"""Measures the GPU table: smg fused and unfused, in f32 and f16, beside PyTorch, on one GPU in one run.

    gpu_bench.py SMG OUT [--table gpu_rows|gpu_paper] [--seconds N] [--part NAME] [--only WORDS] [--commit HASH]
                 [--ggml PROGRAM] [--hand FOLDER] [--no-compiled] [--tune [SECONDS]] [--trial]

Run by scripts/gpu-bench.sh and scripts/paper.sh. A table is a module with ROWS, PARTS and RESULTS, as gpu_rows.py is. Every
smg figure is the median of fused and unfused replays in turns, each behind a run of its own, by GPU timestamps after a
warm-up by time (`smg bench`), every PyTorch figure the median of CUDA events after a warm-up by time. The result of each
measured run, of each peer's, too, is compared with double on sampled rows and scanned for what is not finite. While
something is measured, nvidia-smi tells the clock and the power ten times a second. OUT/results.json is written after each
row; a row that stands there already is measured again when it is reached, so the parts of several calls come together in
one file. --seconds: no row is begun that would end later. --hand: kernels written by hand, as gpu_hand.py takes them.
--no-compiled: without torch.compile, which takes longest. --tune: `smg tune` at the row's sizes, for so long (30 s); what
its plan took, and how long tuning took, stand beside the figures of the plan by price. --trial: every row at sizes of at
most 16, into OUT/trial.json, which no report takes: does everything run here? Without a CUDA device PyTorch is not
measured, which the rows say; a trial compares its results all the same.
"""
import argparse
import importlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import gpu_rows

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPHS = os.path.join(HERE, "graphs")
WARM, SPAN, SMG_TIMEOUT, COMPILE_TIMEOUT = 0.3, 0.3, 150, 60  # seconds
ROUNDINGS = 1.05  # of results to their type, where that is more than a row's limit
BATCH_US, MOST_CALLS, TRIAL_SIZE = 3000, 50, 16
NO_CUDA = "no CUDA device"


class Watch:
    """Clock and power while things run."""

    def __init__(self):
        self.samples, self.process = [], None
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "100"]
        if shutil.which(query[0]):
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = re.findall(r"[\d.]+", line)
            if len(words) == 2:
                self.samples.append((time.time(), float(words[0]), float(words[1])))

    def since(self, start):
        """(MHz, W): medians of the busier half of the samples."""
        seen = sorted((s for s in self.samples if s[0] >= start), key=lambda s: s[2])
        seen = seen[len(seen) // 2:]
        if not seen:
            return None, None
        return statistics.median(s[1] for s in seen), statistics.median(s[2] for s in seen)

    def close(self):
        if self.process:
            self.process.terminate()


def timed(torch, work, calls):
    """Microseconds of one of so many calls by CUDA events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / calls


def microseconds_of(torch, work):
    """The median; short work is called again and again between two events, so that the host is not what is timed."""
    start = time.time()
    while time.time() - start < WARM:
        once = timed(torch, work, 1)
    calls = max(1, min(MOST_CALLS, int(BATCH_US / once)))
    times, start = [], time.time()
    while time.time() - start < SPAN or len(times) < 5:
        times.append(timed(torch, work, calls))
    return round(statistics.median(times), 1)


def first_line(failure):
    return (str(failure) or repr(failure)).splitlines()[0][:200]


def checked(case, precision, work):
    """What the result of a peer's call is off by. Where that cannot be told, why: its time stands all the same."""
    import gpu_peers

    try:
        pairs, finite = case.check(precision, work())
        return {"error": gpu_peers.error_of(pairs), "finite": finite}
    except Exception as failure:  # noqa: any library's
        return {"unchecked": first_line(failure)}


class Bench:
    def __init__(self, options):
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        self.torch, self.options, self.table = torch, options, importlib.import_module(options.table)
        self.rows = [self.tried_small(row) for row in self.table.ROWS]
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.begin = time.time()
        self.path = os.path.join(options.out, "trial.json" if options.trial else self.table.RESULTS)
        self.work = tempfile.mkdtemp()
        self.watch = Watch()
        self.results = {"rows": []}
        if os.path.exists(self.path) and not options.trial:
            with open(self.path, encoding="utf-8") as file:
                self.results = json.load(file)
        for row in self.results["rows"]:
            row.setdefault("commit", self.results.get("commit"))
            row.setdefault("device", self.results.get("device"))

    def tried_small(self, row):
        if not self.options.trial:
            return row
        return {**row, "repeat": 2, "dims": {name: min(size, TRIAL_SIZE) for name, size in row["dims"].items()}}

    def left(self):
        return self.options.seconds - (time.time() - self.begin)

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)
            file.write("\n")
        os.replace(self.path + ".new", self.path)

    def result_of(self, name):
        """The entry of a row in the file, in the order of the table."""
        order = [r["name"] for r in self.rows]
        for known in self.results["rows"]:
            if known["name"] == name:
                return known
        known = {"name": name, "part": self.rows[order.index(name)]["part"], "smg": {}, "peers": {},
                 "device": self.results.get("device")}
        self.results["rows"].append(known)
        self.results["rows"].sort(key=lambda r: order.index(r["name"]))
        return known

    def add_peer(self, name, peer, told):
        """A peer that is measured apart from its row; a row of another card gets none."""
        known = self.result_of(name)
        same = known["device"] == self.results["device"]
        if same:
            known["peers"][peer] = told
        print(f"{time.time() - self.begin:5.0f} s  {name}: {peer} {told}"
              f"{'' if same else ', left out: the row is of ' + str(known['device'])}", flush=True)

    def is_timed(self):
        return self.device == "cuda"

    # ---- the machine ----

    def describe(self):
        names = {}
        found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                               capture_output=True, text=True, check=False) if shutil.which("nvidia-smi") else None
        if found and found.returncode == 0:
            names = dict(zip(("device", "driver"), found.stdout.splitlines()[0].split(", "), strict=True))
        facts = subprocess.run([self.options.smg, "devices", "--verbose"], capture_output=True, text=True, check=False)
        target = {}
        for name in ("name", "driver", "bandwidth", "fma_rate"):
            line = re.search(rf"^{name} = ([^#\n]+)", facts.stdout, re.M)
            if line:
                target[name] = line[1].strip() if name in ("name", "driver") else float(line[1])
        rates = re.findall(r"^matrix = \S+ f16 f16 f32 f32 ([\d.e+]+)", facts.stdout, re.M)
        target["matrix_rate"] = max((float(r) for r in rates), default=0)
        self.results.update(device=names.get("device", target.get("name", "?")), target=target,
                            driver=names.get("driver", target.get("driver", "?")), commit=self.options.commit,
                            pytorch=self.torch.__version__)
        if self.options.trial:
            self.results["trial"] = True

    # ---- one row ----

    def run_smg(self, verb, words):
        """What the verb tells, None; or None and why it tells nothing."""
        limit = max(5, min(SMG_TIMEOUT, self.left()))
        try:
            done = subprocess.run([self.options.smg, verb, "--json", *words], capture_output=True, text=True, check=False,
                                  timeout=limit)
        except subprocess.TimeoutExpired:
            return None, f"smg {verb} took longer than {limit:.0f} s"
        if done.returncode != 0 or not done.stdout.strip():
            return None, (done.stderr.strip().splitlines() or ["no output"])[-1][-300:]
        return json.loads(done.stdout), None

    def measure_plan(self, row, case, precision, words):
        """The row's figures with the plan that the words choose, its result compared with double."""
        import gpu_peers

        start = time.time()
        told, why = self.run_smg("bench", words)
        if told is None:
            return {"failed": why}
        clock, power = self.watch.since(max(start, time.time() - 2))
        fused, unfused = told["fused"], told["unfused"]
        if "missing" in unfused:
            return {"failed": unfused["missing"]}
        pairs, finite = case.check(precision)
        limit = gpu_rows.F32_LIMIT if precision == "f32" else row["f16"]
        for name in case.outputs:
            os.remove(os.path.join(self.work, name + ".npy"))
        return {"us": fused["median_us"], "unfused_us": unfused["median_us"], "kernels": fused["kernels"],
                "unfused_kernels": unfused["kernels"], "bytes": fused["bytes"], "flops": fused["flops"],
                "compile_s": fused["compile_seconds"], "mhz": clock, "watts": power,
                "wall_s": round(time.time() - start, 1), "error": gpu_peers.error_of(pairs), "finite": finite,
                "limit": max(limit, ROUNDINGS * gpu_peers.rounding_of(pairs, precision))}

    def tune(self, row, case, precision, sizes, bench):
        """What tuning says, and the figures with its plan, for the row; where it fails the row has why."""
        tuning, why = self.run_smg("tune", [case.path, *sizes, *case.inputs, *row["words"], "--time", f"{self.options.tune}s"])
        if tuning is None:
            return {"tuning_failed": why}
        tuned = self.measure_plan(row, case, precision, bench)
        if "failed" in tuned:
            return {"tuning_failed": tuned["failed"]}
        told = {"tuning_s": tuning["tuning_seconds"], "tuning_kept": tuning["kept"], "tuned_error": tuned["error"]}
        if not tuned["finite"] or tuned["error"] > tuned["limit"]:
            return {**told, "tuning_failed": "its result is wrong"}
        return {**told, "tuned_us": tuned["us"]}

    def measure_smg(self, row, case, precision):
        rounds = row["repeat"] * (3 if precision == "f16" else 1)
        sizes = ["--precision", precision]
        for name, value in row["dims"].items():
            sizes += ["--dim", f"{name}={value}", "--max-dim", f"{name}={value}"]
        bench = [case.path, "--repeat", str(rounds), *sizes, *case.inputs, *row["words"]]
        for name in case.outputs:
            bench += ["--output", f"{name}={os.path.join(self.work, name)}.npy"]
        result = self.measure_plan(row, case, precision, [*bench, "--tuning", "none"])
        if self.options.tune and "failed" not in result:
            result.update(self.tune(row, case, precision, sizes, bench))
        return result

    def tried(self, what, function):
        """Its result, or why there is none: one row's failure is not the run's."""
        try:
            with self.torch.no_grad():
                return function()
        except Exception as failure:  # noqa: any library's
            print(f"{what}: {failure!r}"[:300], file=sys.stderr, flush=True)
            return {"failed": first_line(failure)}
        finally:
            if self.is_timed():
                self.torch.cuda.empty_cache()

    def measure_peer(self, case, precision, make, context):
        told = {"failed": NO_CUDA}
        if not self.is_timed() and not self.options.trial:
            return told
        with context():
            work, start = make(), time.time()
            if self.is_timed():
                told = {"us": microseconds_of(self.torch, work)}
                told["mhz"], told["watts"] = self.watch.since(start)
            return {**told, **checked(case, precision, work)}

    def measure_peers(self, case, precision, known):
        for name, (make, context) in case.peers(precision).items():
            known["peers"][name] = self.tried(name, lambda: self.measure_peer(case, precision, make, context))

    def measure(self, row, case):
        known, start = self.result_of(row["name"]), time.time()
        run = {"commit": self.options.commit, "device": self.results["device"]}
        if any(known.get(what) != value for what, value in run.items()):  # nothing of a row is another run's
            known.update(smg={}, peers={}, **run)
        for precision in row["precisions"]:
            known["smg"][precision] = self.tried(row["name"], lambda: self.measure_smg(row, case, precision))
        if hasattr(case, "attention"):
            known["attention"] = case.attention
        for precision in row["precisions"]:
            self.tried(row["name"], lambda: self.measure_peers(case, precision, known))
        known["wall_s"] = round(time.time() - start, 1)
        self.write()
        short = {p: r.get("us", r.get("failed")) for p, r in known["smg"].items()}
        errors = {p: "%.1e" % r["error"] for p, r in [*known["smg"].items(), *known["peers"].items()] if "error" in r}
        print(f"{time.time() - self.begin:5.0f} s  {row['name']}: {short} peers "
              f"{ {n: p.get('us', 'failed') for n, p in known['peers'].items()} } errors {errors}", flush=True)

    # ---- parts ----

    def due(self, part):
        pattern = re.compile(self.options.only, re.I)
        for row in self.rows:
            if row["part"] == part and pattern.search(row["name"]):
                last = self.result_of(row["name"]).get("wall_s", row["seconds"])
                if self.left() > last:
                    yield row
                else:
                    print(f"{time.time() - self.begin:5.0f} s  {row['name']}: not run, {self.left():.0f} s left of about "
                          f"{last:.0f}", flush=True)

    def failed(self, row, told):
        """A row that was reached, and could not be made."""
        known = self.result_of(row["name"])
        known.update(smg={p: dict(told) for p in row["precisions"]}, peers={}, commit=self.options.commit,
                     device=self.results["device"])
        self.write()

    def subgraphs(self, part="subgraphs"):
        import gpu_peers

        for row in self.due(part):
            case = self.tried(row["name"], lambda: gpu_peers.Subgraph(row, GRAPHS, self.work, self.device))
            if isinstance(case, dict):
                self.failed(row, case)
                continue
            self.measure(row, case)
            case.close()

    def models(self, part="models"):
        import gpu_models

        made = None
        for row in self.due(part):
            if made is None or made.name != row["graph"]:
                if made:
                    made.close()
                saved = self.torch.float32 if "f32" in row["precisions"] else self.torch.float16
                made = self.tried(row["name"], lambda: gpu_models.Made(row["graph"], self.work, self.device, saved))
                if isinstance(made, dict):
                    self.failed(row, made)
                    made = None
                    continue
            case = self.tried(row["name"], lambda: gpu_models.Model(row, made, self.work, self.device))
            if isinstance(case, dict):
                self.failed(row, case)
                continue
            self.measure(row, case)
            case.close()
        if made:
            made.close()

    def large(self):
        self.models("large")

    def compiled(self):
        """torch.compile in a process of its own, which is ended when one row takes it longer than a minute."""
        pattern = re.compile(self.options.only, re.I)
        rows = [r for r in self.rows if "f16" in r["precisions"] and pattern.search(r["name"])]
        if not self.is_timed() and not self.options.trial:
            for row in rows:
                self.add_peer(row["name"], "compiled f16", {"failed": NO_CUDA})
            rows = []
        while rows and self.left() > 15:
            with open(os.path.join(self.work, "compiled.json"), "w", encoding="utf-8") as file:
                json.dump(rows, file)
            child = subprocess.Popen([sys.executable, os.path.join(HERE, "gpu_compiled.py"), self.work, self.device],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            rows = self.read_compiled(child, rows)
        if rows:
            print(f"no time left to compile {'; '.join(r['name'] for r in rows)}", flush=True)

    def read_compiled(self, child, rows):
        """Takes a line for each row; gives the rows behind the one that took too long or ended the process, and where this
        run's own time was over, that one, too."""
        ended, late = False, threading.Event()

        def end():
            late.set()
            child.kill()

        while rows and not ended:
            limit, left = COMPILE_TIMEOUT + 15, self.left()  # imports come first
            timer = threading.Timer(max(1, min(limit, left)), end)
            timer.start()
            line = child.stdout.readline()
            timer.cancel()
            ended = not line.strip()
            if ended and late.is_set() and left < limit:
                break
            if ended:
                told = {"failed": "more than a minute" if late.is_set() else f"ended its process, status {child.wait()}"}
            else:
                told = json.loads(line)
            self.add_peer(rows[0]["name"], "compiled f16", told)
            self.write()
            rows = rows[1:]
        child.kill()
        child.wait()
        return rows

    def hand(self):
        """Kernels written by hand, a process each."""
        import gpu_hand

        if not self.options.hand:
            return
        pattern = re.compile(self.options.only, re.I)
        device = self.results["target"].get("name", "?")
        for name, peer, job, tiny in gpu_rows.BY_HAND:
            if not pattern.search(name):
                continue
            if self.left() < 10:
                print(f"no time left for {job} and those behind it", flush=True)
                break
            small = self.options.trial and not self.is_timed()
            told = gpu_hand.measure(self.options.hand, tiny if small else job, self.work, device, min(60, self.left()),
                                    self.options.trial)
            self.add_peer(name, f"by hand {peer}", told)
            self.write()

    def ggml(self):
        """A program that prints a line of JSON for each row that it has: {"name", "peer", "us", "error"}."""
        if not self.options.ggml or self.left() < 10:
            return
        try:
            done = subprocess.run([self.options.ggml], capture_output=True, text=True, check=False,
                                  timeout=min(90, self.left()))
            lines = done.stdout.splitlines()
            print(f"ggml-vulkan: status {done.returncode} {done.stderr[-300:]}", file=sys.stderr)
        except (OSError, subprocess.TimeoutExpired) as failure:
            lines = []
            print(f"ggml-vulkan: {failure}", file=sys.stderr)
        for told in (json.loads(line) for line in lines if line.startswith("{")):
            self.add_peer(told["name"], told["peer"], {"us": told["us"], "error": told["error"]})
        self.write()

    def run(self):
        parts = [self.options.part] if self.options.part else self.table.PARTS
        parts = [part for part in parts if part != "compiled" or self.options.compiled]
        try:
            self.describe()
            for part in parts:
                getattr(self, part)()
        finally:
            self.results["rows"] = [r for r in self.results["rows"] if r["smg"] or r["peers"]]
            self.write()
            self.watch.close()
            shutil.rmtree(self.work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smg")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--table", choices=("gpu_rows", "gpu_paper"), default="gpu_rows")
    parser.add_argument("--part", choices=("subgraphs", "models", "large", "compiled", "ggml", "hand"))
    parser.add_argument("--only", default="", help="a regular expression; rows whose name it finds")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--ggml", default="")
    parser.add_argument("--hand", default="", help="a folder that gpu-bench.sh packed with --reference")
    parser.add_argument("--no-compiled", dest="compiled", action="store_false", help="no torch.compile")
    parser.add_argument("--tune", type=int, nargs="?", const=30, default=0, metavar="SECONDS",
                        help="measure schedules of each row, too, and take the fastest")
    parser.add_argument("--trial", action="store_true", help="small sizes, nothing for a report")
    options = parser.parse_args()
    parts = importlib.import_module(options.table).PARTS
    if options.part and options.part not in parts:
        parser.error(f"{options.table} has no part {options.part}, but {', '.join(parts)}")
    if options.part == "hand" and not options.hand:
        parser.error("--part hand without a folder of --hand")
    os.makedirs(options.out, exist_ok=True)
    Bench(options).run()


if __name__ == "__main__":
    main()
