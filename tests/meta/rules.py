"""The rules of CONTRIBUTING.md that a script can check. Prints one line per breach.

Comments and string literals are taken out before words are looked for, except where the rule is
about the words themselves.
"""

import os
import re
import subprocess
import sys

ROOT = os.environ.get("SMG_SOURCE_DIR", os.getcwd())
breaches = []


def breach(path, line, why):
    breaches.append(f"{path}:{line}: {why}" if line else f"{path}: {why}")


def files_of(*folders, ends):
    for folder in folders:
        for base, folders_below, names in os.walk(os.path.join(ROOT, folder)):
            folders_below.sort()
            for name in sorted(names):
                if name.endswith(ends):
                    yield os.path.relpath(os.path.join(base, name), ROOT)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(path):
    """The text with comments and literals blanked, line numbers kept."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    return TOKENS.sub(blank, text_of(path))


def look(path, text, pattern, why):
    for match in re.finditer(pattern, text):
        breach(path, text.count("\n", 0, match.start()) + 1, f"{why} ({match.group(0).strip()})")


C = (".c", ".h", ".def")
ENDS_THE_HOST = r"(?<![\w.>])(?:f|v|vf|d)?(?:printf|puts|putchar|putc|fputs|perror)\s*\(|(?<![\w.>])(?:exit|_exit|_Exit|quick_exit|abort|assert|raise|signal|sigaction|atexit)\s*\("
MACHINE_PATH = r"(?<![\w./$}])/(?:home|root|work|Users|mnt|workspace)/[\w.-]+"

for path in files_of("include", ends=C):
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if len(line) > 120:
            breach(path, number, f"{len(line)} columns; 120 at most")
for path in files_of("src", ends=C):
    code, text = code_of(path), text_of(path)
    folder = path.split(os.sep)[1]
    if folder != "cli":
        look(path, code, ENDS_THE_HOST, "the library never prints, exits, aborts or takes signals")
    if folder != "op":
        look(path, code, r"\bcase\s+SMG_OP_\w+", "asking which op it is belongs to src/op alone")
    if folder in ("space", "slice", "sched", "kernel", "lower", "glsl"):
        look(path, text, r"(?i)softmax|attention|bert", "fusion is derived, not recognised by name")
    lines = text.count("\n")
    if lines > 800 and path.endswith((".c", ".h")):
        breach(path, 0, f"{lines} lines; 800 at most")
    if os.path.basename(path) == folder + ".h":
        for word in ("Takes:   ", "Gives:   ", "Promises:", "Does not:"):
            if f"\n * {word} " not in text:
                breach(path, 1, f"a front header lacks its line '{word.strip()}'")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > 120 and path.endswith((".c", ".h")):
            breach(path, number, f"{len(line)} columns; 120 at most")
    if path.endswith((".c", ".h")) and not re.match(r"(?:#define _\w+.*\n|#if.*\n|#endif.*\n)*\s*/\*", text):
        breach(path, 1, "opens without the paragraph a reader needs first")

# The command is a program like those of others: what it can they can.
STANDARD = "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg " \
    "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype".split()
OF_THE_COMMAND = re.compile(r"\"(?:cli/\w+\.h|smg/\w+\.h)\"|<(?:smg/\w+|" + "|".join(STANDARD) + r")\.h>")
for path in files_of("src/cli", ends=C):
    for match in re.finditer(r"(?m)^\s*#\s*include\s*(.*)$", text_of(path)):
        if OF_THE_COMMAND.match(match.group(1)) is None:
            breach(path, text_of(path).count("\n", 0, match.start(1)) + 1,
                   f"the command is written on public headers and the C library alone ({match.group(1).strip()})")
    look(path, code_of(path), r"\bextern\b|\b_POSIX_C_SOURCE\b",
         "the command is written on public headers and the C library alone")

# Statics that change. Constant tables are fine; function-local statics are as bad as file-scope ones. The one lock is
# for other libraries' globals.
for path in files_of("src", ends=(".c", ".h")):
    look(path, code_of(path),
         r"(?m)^\s*static\s+(?!inline\b|const\b|_Noreturn\b|smg_os_mutex process_lock\b)(?!.*\bconst\b)[^(){};=]*(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;",
         "state that outlives the context")

# What pages for users name is there to be called.
public = set(re.findall(r"\bsmg_\w+", " ".join(text_of(path) for path in files_of("include", ends=C))))
for path in ("README.md", "docs/embedding.md", "docs/models.md", "docs/explain.md"):
    if not os.path.isfile(os.path.join(ROOT, path)):
        continue
    for match in re.finditer(r"\bsmg_\w+", text_of(path)):
        if match.group(0) not in public:
            breach(path, text_of(path).count("\n", 0, match.start()) + 1,
                   f"no public header has this name ({match.group(0)})")

# Links to other files lead somewhere.
for path in ("README.md", *files_of("docs", "bench", ends=(".md",))):
    if not os.path.isfile(os.path.join(ROOT, path)):
        continue
    for match in re.finditer(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", text_of(path)):
        if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), match.group(1))):
            breach(path, text_of(path).count("\n", 0, match.start()) + 1, f"a link that leads nowhere ({match.group(1)})")

tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=False)
names = [n for n in tracked.stdout.decode().split("\0") if n]
if not names:
    names = list(files_of("include", "src", "tests", "cmake", "scripts", ends=("",)))
for path in names:
    full = os.path.join(ROOT, path)
    if not os.path.isfile(full) or os.path.islink(full):
        continue
    if os.path.getsize(full) > 2 << 20:
        breach(path, 0, f"{os.path.getsize(full) >> 20} MiB: no large files in the repository")
        continue
    with open(full, "rb") as file:
        if b"\0" in file.read(8192):
            continue
    look(path, text_of(path), MACHINE_PATH, "a path of one machine")

for line in breaches:
    print(line)
print(f"{len(breaches)} breaches")
sys.exit(1 if breaches else 0)
