"""The outputs shown in README.md and docs/: a block after "`smg ...`:" is what that command prints, but
for prices (times, bytes, arithmetic, workgroups, registers), which are estimates and move. And the table of passes in
docs/kernel.md, which is that of `smg explain --phase lower`.

    tests/golden/docs.py            compares
    tests/golden/docs.py --write    puts what the commands print today into the blocks
"""
import difflib
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from smg_command import BINARY, SOURCE, Report, read, write

BLOCK = re.compile(r"(`(smg [^`]+)`[^`]*:\n\n```\n)(.*?)(```\n)", re.S)


def without_prices(text):
    text = re.sub(r"\d[\d.e+]*(?= ?(us|ms|KB|MB|B|Mflop|workgroups)\b)", "?", text)
    table = re.compile(r"^(k\d+|as planned|apart|k\d+\.\.k\d+|  +\d+) .*\d\.\d", re.M)
    text = table.sub(lambda row: re.sub(r" +\d+\.\d+", " ?", row[0]), text)
    text = re.sub(r"\d[\d.]*(?= (times as fast|% of|schedules generated|lowered|not lowered|shapes of|pairs of kernels|have one|got a price|values got))", "?", text)
    return re.sub(r"(registers|code) \d+", r"\1 ?", text)


def run(command):
    """Through the shell, because some blocks show a part of the output."""
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=SOURCE, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{BINARY}:{os.environ['PATH']}", "SMG_VALIDATION": "0"})


report = Report()
rewrite = "--write" in sys.argv[1:]
blocks = 0
for path in [f"{SOURCE}/README.md", *sorted(glob.glob(f"{SOURCE}/docs/**/*.md", recursive=True))]:

    def check(match):
        global blocks
        blocks += 1
        done = run(match[2].replace("\n", " "))
        report.check(done.returncode == 0, f"{path}: {match[2]}: {done.stderr}")
        shown, now = without_prices(match[3]), without_prices(done.stdout)
        difference = difflib.unified_diff(shown.splitlines(), now.splitlines(), path, match[2], lineterm="", n=2)
        report.check(rewrite or shown == now, "\n".join(difference))
        return match[1] + (done.stdout if rewrite and done.returncode == 0 else match[3]) + match[4]

    text = read(path).decode()
    new = BLOCK.sub(check, text)
    if new != text:
        write(path, new)
report.check(blocks >= 5, f"{blocks} blocks, at least 5 are wanted")
shown = re.findall(r"^\| `(\w+)` \| (.+) \|$", read(f"{SOURCE}/docs/kernel.md").decode(), re.M)
passes = run("smg explain tests/graphs/softmax.smg --target h200 --phase lower").stdout
passes = re.findall(r"^k0 pass (\w+): (.+?)(?: \(nothing to do\))?$", passes, re.M)
difference = [f"{a} in docs/kernel.md, {b} now" for a, b in zip(shown, passes) if a != b]
report.check(shown == passes, "\n".join(difference) or f"docs/kernel.md has {len(shown)} passes, there are {len(passes)}")
if report.failures:
    print("If the change is meant: tests/golden/docs.py --write")
sys.exit(report.finish())
