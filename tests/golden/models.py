"""Makes the table of docs/models.md: what is left of every stored model after fusion.

    ctest -R golden.models         a number that is worse than the table's fails (traffic: by 5 %)
    tests/golden/models.py --write    writes the table; look at the difference before committing it

Planning is pure, so the table is the same on every machine. A better number passes, and says so.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from smg_command import BINARY, SOURCE, smg

PAGE = os.path.join(SOURCE, "docs", "models.md")
MODELS = os.environ.get("SMG_TEST_MODELS") or os.path.join(BINARY, "test-models")
SIZES = {"batch": 1, "sequence": 128, "decoder_sequence": 128}
COLUMNS = ("graph ops", "after rewrites", "kernels", "prepared", "KB moved", "KB unfused")
BEGIN, END = "<!-- made by tests/golden/models.py -->", "<!-- end -->"


def explain(path, *words):
    info = json.loads(smg("info", path, "--json").stdout)
    dims = [w for name in info["sizes"] for w in ("--dim", f"{name}={SIZES[name]}")]
    done = smg("explain", path, "--target", "h200", "--objective", "dispatches", "--json", *dims, *words, timeout=280)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def moved(plan):
    return round(sum(kernel["bytes"] for kernel in plan["kernels"]) / 1e3)


def row(path):
    fused, unfused = explain(path), explain(path, "--unfused")
    return (fused["ops"], fused["ops_rewritten"], len(fused["kernels"]), len(fused["prepare"]), moved(fused),
            moved(unfused))


def models():
    folder = os.path.join(MODELS, "onnx")
    for name in sorted(os.listdir(folder)):
        yield name, os.path.join(folder, name, "model.onnx")
    folder = os.path.join(SOURCE, "tests", "models")
    for name in sorted(os.listdir(folder)):
        if name.startswith("hf-") and name.endswith("-tiny"):
            yield name, os.path.join(folder, name)


def page_rows(text):
    rows = {}
    for line in text[text.index(BEGIN):text.index(END)].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) + 1 and re.fullmatch(r"\d+", cells[1]):
            rows[cells[0]] = tuple(int(cell) for cell in cells[1:])
    return rows


def write(text, rows):
    lines = [BEGIN, "| model | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    lines += [f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |" for name, cells in rows.items()]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text[:text.index(BEGIN)] + "\n".join(lines) + "\n" + text[text.index(END):])


def main():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    found = {name: row(path) for name, path in models()}
    if "--write" in sys.argv[1:]:
        write(text, found)
        return 0
    failures = 0
    known = page_rows(text)
    for name in sorted(set(known) | set(found)):
        if name not in known or name not in found:
            print(f"{name}: only in {'the models' if name in found else 'docs/models.md'}")
            failures += 1
            continue
        for column in ("after rewrites", "kernels", "KB moved"):
            index = COLUMNS.index(column)
            was, now = known[name][index], found[name][index]
            if now > was * (1.05 if column == "KB moved" else 1):
                print(f"{name}: {column} was {was}, is {now}")
                failures += 1
            elif now < was:
                print(f"{name}: {column} was {was}, is {now}: better; --write renews docs/models.md")
    print(f"{len(found)} models, {failures} numbers worse")
    return 1 if failures or not found else 0


sys.exit(main())
