"""What explain says of every graph in tests/graphs on four targets, at the level that does not move with
tile sizes, lanes or prices: rewrites, which nodes share a kernel, what each axis is for, why an axis is
not cut, what was derived, and why kernels are apart. Fewest dispatches, so that prices decide nothing.

    tests/golden/explain.py            compares with tests/golden/explain/*.txt
    tests/golden/explain.py --write    rewrites them; look at the difference before committing it
"""
import difflib
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from smg_command import SOURCE, Report, read, smg, write

TARGETS = ["h200", "lavapipe", "tests/targets/shared16k_inv128.target", "tests/targets/subgroup4.target"]


def settled(line):
    """The line without what depends on a tile size or on names of tiles; None: all of it does."""
    if re.match(r"(run list|another|prepare:)|  because   lanes ", line):
        return None
    line = re.sub(r" on \S+$", "", line) if line.startswith("graph ") else line
    line = re.sub(r"(: \d+ ops?)(, once, of constants)?, \d+ invocations.*$", r"\1\2", line)
    line = re.sub(r", tile \d+$", "", line)
    line = re.sub(r"^  because   (\S+ = .*): ", r"  axis \1: ", line)
    return re.sub(r"\b(acc|add|max|min|mul|old|t|v)\d+\b", r"\1", line)


def compact(text):
    """Nodes of a kernel on one line."""
    lines, nodes = [], []
    for line in map(settled, text.splitlines()):
        if line is None:
            continue
        if line.startswith("    ") and not line.strip()[0].isdigit():
            nodes.append("=".join(reversed(line.split(None, 1))))
            continue
        if nodes:
            lines.append("    " + ", ".join(nodes))
            nodes = []
        lines.append(line)
    return "\n".join(lines + (["    " + ", ".join(nodes)] if nodes else []))


def describe(graph):
    """Targets with the same text share it."""
    texts = {}
    for target in TARGETS:
        done = smg("explain", graph, "--target", os.path.join(SOURCE, target) if "/" in target else target,
                   "--objective", "dispatches")
        text = compact(done.stdout) if done.returncode == 0 else done.stderr.strip().replace(SOURCE + "/", "")
        texts.setdefault(text, []).append(os.path.basename(target).removesuffix(".target"))
    return "\n".join(f"== {', '.join(names)}\n{text}\n" for text, names in texts.items())


report = Report()
rewrite = "--write" in sys.argv[1:]
wanted = set()
for graph in sorted(glob.glob(f"{SOURCE}/tests/graphs/*.smg")):
    golden = f"{SOURCE}/tests/golden/explain/{os.path.basename(graph).removesuffix('.smg')}.txt"
    wanted.add(golden)
    new = describe(graph)
    if rewrite:
        write(golden, new)
    old = read(golden).decode() if os.path.exists(golden) else ""
    difference = "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), golden, "now", lineterm="", n=2))
    report.check(old == new, difference)
for golden in glob.glob(f"{SOURCE}/tests/golden/explain/*.txt"):
    if golden not in wanted and rewrite:
        os.remove(golden)
    report.check(golden in wanted or rewrite, f"{golden} has no graph")
report.check(len(wanted) >= 12, f"{len(wanted)} graphs, at least 12 are wanted")
if report.failures:
    print("If the change is meant: tests/golden/explain.py --write")
sys.exit(report.finish())
