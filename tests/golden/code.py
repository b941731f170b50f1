"""How much code each stored model is: kernels a model, and operations of its largest kernel after all unrolling, for a
CPU's driver and one GPU's. A driver takes time by both, and CI must not find out by waiting.

    ctest -R golden.code           more kernels, or more operations in one, than the table says fails; two of the three
                                   cases of each model, in turns, or all with SMG_ALL_CASES
    tests/golden/code.py --write   writes the table, tests/golden/code.txt; look at the difference before committing it

Planning is pure, so the numbers are the same on every machine. Widths that are no power of two are in it, because
tiles that do not divide them are where code grows.
"""
import concurrent.futures
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from smg_command import BINARY, OUTPUT, SOURCE, smg

sys.path.insert(0, os.path.join(SOURCE, "bench"))
import startup_models

TABLE = os.path.join(HERE, "code.txt")
MODELS = os.environ.get("SMG_TEST_MODELS") or os.path.join(BINARY, "test-models")
CASES = (("lavapipe", 1, 8), ("lavapipe", 3, 53), ("h200", 1, 128))


def models():
    folder = os.path.join(MODELS, "onnx")
    for name in sorted(os.listdir(folder)):
        yield name, os.path.join(folder, name, "model.onnx")
    folder = os.path.join(SOURCE, "tests", "models")
    for name in sorted(os.listdir(folder)):
        if name.startswith("hf-"):
            yield name, os.path.join(folder, name)
    folder = os.path.join(OUTPUT, "code-models")
    yield from startup_models.make(folder)


def budget(target):
    graph = os.path.join(SOURCE, "tests", "graphs", "softmax.smg")
    facts = smg("explain", graph, "--target", target, "--phase", "target").stdout
    return int(re.search(r"code_budget = (\d+)", facts).group(1))


def row_of(name, target, batch, sequence):
    return f"{name} {target} {batch}x{sequence}"


def count(name, path, target, batch, sequence):
    sizes = json.loads(smg("info", path, "--json").stdout)["sizes"]
    given = [word for size, facts in sizes.items() for word in
             ("--dim", f"{size}={min(batch if 'batch' in size else sequence, facts['max'] or 1 << 30)}")]
    done = smg("explain", path, "--target", target, "--json", *given, timeout=280)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr}")
    plan = json.loads(done.stdout)
    most = max(kernel["operations"] for kernel in plan["kernels"] + plan["prepare"])
    return row_of(name, target, batch, sequence), (len(plan["kernels"]), most)


def counted(every):
    """What was found, and which rows were left out."""
    jobs, left = [], set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for i, (name, path) in enumerate(models()):
            for n, (target, batch, sequence) in enumerate(CASES):
                if every or (i + n) % len(CASES) != 0:
                    jobs.append(pool.submit(count, name, path, target, batch, sequence))
                else:
                    left.add(row_of(name, target, batch, sequence))
        return dict(job.result() for job in jobs), left


def main():
    found, left = counted("--write" in sys.argv or "SMG_ALL_CASES" in os.environ)
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as out:
            out.writelines(f"{row} kernels {kernels} largest {most}\n" for row, (kernels, most) in found.items())
        return 0
    known = {}
    with open(TABLE, encoding="utf-8") as lines:
        for line in lines:
            row, kernels, most = re.fullmatch(r"(.+) kernels (\d+) largest (\d+)\n", line).groups()
            known[row] = (int(kernels), int(most))
    limits = {target: budget(target) for target, _, _ in CASES}
    wrong = 0
    for row, (kernels, most) in found.items():
        limit = known.get(row, (0, 0))
        if kernels > limit[0] or most > max(limit[1], 1) * 1.25 or most > limits[row.split()[-2]]:
            print(f"{row}: {kernels} kernels, the largest of {most} operations; the table has {limit[0]} and {limit[1]}")
            wrong += 1
    gone = sorted(set(known) - set(found) - left)
    print("".join(f"{row} is in the table only\n" for row in gone) + f"{len(found) - wrong} of {len(found)} rows hold")
    return 1 if wrong or gone else 0


sys.exit(main())
