"""The pinned tools find what they are there for: a file out of shape, a function that is too long, an assignment from
memory that is gone."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lint import ROOT, tool

LONG = "int f(int x);\nint f(int x) {\n" + "    x++;\n" * 61 + "    return x;\n}\n"
FREED = "#include <stdlib.h>\nint f(int *p);\nint f(int *p) {\n    free(p);\n    return *p;\n}\n"
CASES = [("int f( void );\n", "format", True), ("int f(void);\n", "format", False), (LONG, "function-size", True),
         (FREED, "unix.Malloc", True), ("int f(void);\n", "tidy", False)]

clang_format, clang_tidy = tool("clang-format"), tool("clang-tidy")
wrong = 0
for text, what, wanted in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        words = [clang_format, "--dry-run", "-Werror", f"--style=file:{ROOT}/.clang-format", path]
        if what != "format":
            words = [clang_tidy, "--quiet", f"--config-file={ROOT}/.clang-tidy", path, "--", "-std=c11"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if (done.returncode != 0) != wanted or (wanted and what not in done.stdout + done.stderr):
            wrong += 1
            print(f"{what}: wanted {wanted}, got {done.returncode}\n{done.stdout}{done.stderr}")
print(f"{len(CASES)} cases, {wrong} wrong")
sys.exit(1 if wrong else 0)
