"""Every C file looks as clang-format leaves it (.clang-format). Generated ones say so in their first line."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lint import ROOT, tool, tracked

clang_format = tool("clang-format")
files = []
for name in tracked("*.c", "*.h"):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        if not file.readline().startswith("/* Made by "):
            files.append(name)
done = subprocess.run([clang_format, "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True, check=False)
print(done.stderr, end="")
if done.returncode != 0:
    print(f"to mend it: {clang_format} -i FILE")
print(f"{len(files)} files")
sys.exit(1 if done.returncode != 0 or len(files) < 100 else 0)
