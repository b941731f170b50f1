"""rules.py finds each breach it is there for, and none in code that keeps the rules."""

import os
import subprocess
import sys
import tempfile

RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rules.py")
OPEN = "/* Says what it is. */\n"
HOME = "/" + "home"

CASES = [  # path, text, must be found
    ("src/op/op.c", OPEN + "void f(void) { switch (x) { case SMG_OP_ADD: break; } }\n", None),
    ("src/sched/a.c", OPEN + "void f(void) { switch (x) { case SMG_OP_ADD: break; } }\n", "src/op alone"),
    ("src/base/a.c", OPEN + 'void f(void) { printf("x"); }\n', "never prints"),
    ("src/base/a.c", OPEN + 'void f(void) { fprintf(stderr, "x"); }\n', "never prints"),
    ("src/base/a.c", OPEN + "void f(void) { abort(); }\n", "never prints"),
    ("src/base/a.c", OPEN + "void f(void) { exit(1); }\n", "never prints"),
    ("src/base/a.c", OPEN + 'void f(void) { snprintf(b, 1, "printf(1); exit(1)"); on_exit_of(x); }\n', None),
    ("src/base/a.c", OPEN + "/* exit(1) */ void f(void) { t->printf(1); }\n", None),
    ("src/cli/a.c", OPEN + 'int main(void) { printf("x"); exit(1); }\n', None),
    ("src/cli/a.c", OPEN + '#include <stdio.h>\n#include "cli/cli.h"\n#include "smg/smg.h"\n#include <smg/rt.h>\n', None),
    ("src/cli/a.c", OPEN + '#include "base/base.h"\n', "public headers"),
    ("src/cli/a.h", OPEN + '  # include   "compile/compile.h"\n', "public headers"),
    ("src/cli/a.c", OPEN + '#include <unistd.h>\n', "public headers"),
    ("src/cli/a.c", OPEN + '#include SOME_HEADER\n', "public headers"),
    ("src/cli/a.c", "#define _POSIX_C_SOURCE 200809L\n" + OPEN, "public headers"),
    ("src/cli/a.c", OPEN + "extern int smg_vk_open(void);\n", "public headers"),
    ("src/base/a.c", OPEN + '#include <unistd.h>\n', None),
    ("src/slice/a.c", OPEN + "/* like Softmax */\n", "recognised by name"),
    ("src/import/a.c", OPEN + "/* like softmax */\n", None),
    ("src/base/a.c", OPEN + "int x;\n" * 801, "800 at most"),
    ("src/base/a.c", "int x;\n", "paragraph"),
    ("src/base/a.c", OPEN + "/* " + "x" * 118 + " */\n", "120 at most"),
    ("docs/embedding.md", "Call `smg_frob(x)`.\n", "no public header has this name (smg_frob)"),
    ("docs/architecture.md", "See `smg_frob`.\n", None),
    ("docs/a.md", "See [it](a.md), [that](https://x.org/y) and [b](../docs/a.md#there).\n", None),
    ("docs/a.md", "See [it](a.md) and\n[b](b.md#there).\n", "docs/a.md:2: a link that leads nowhere (b.md)"),
    ("include/smg/a.h", OPEN + "/* " + "x" * 118 + " */\n", "120 at most"),
    ("include/smg/a.h", OPEN + "/* " + "x" * 114 + " */\n", None),
    ("src/base/a.c", "#define _DEFAULT_SOURCE\n" + OPEN, None),
    ("src/base/base.h", "/* base: x.\n *\n * Takes:    a\n * Gives:    b\n * Promises: c\n * Does not: d\n */\n", None),
    ("src/base/base.h", "/* base: x.\n *\n * Takes:    a\n * Gives:    b. Promises: c\n * Does not: d\n */\n", "'Promises:'"),
    ("src/base/other.h", OPEN, None),
    ("src/base/a.c", OPEN + "static int counter;\n", "outlives"),
    ("src/base/a.c", OPEN + "static pthread_mutex_t other_lock;\n", "outlives"),
    ("src/base/a.c", OPEN + "void f(void) {\n    static char *names[4] = {0};\n}\n", "outlives"),
    ("src/base/a.c", OPEN + "static const int t[] = {1};\nstatic const char *const n[] = {0};\n", None),
    ("src/base/a.c", OPEN + "static void f(int x);\nstatic inline int g(void) { return 1; }\n", None),
    ("src/base/a.c", OPEN + f'const char *p = "{HOME}/someone/x";\n', "one machine"),
    ("src/base/a.c", OPEN + 'const char *p = "/usr/share/vulkan";\n', None),
]

wrong = 0
for path, text, wanted in CASES:
    with tempfile.TemporaryDirectory(dir=os.environ.get("SMG_TEST_OUTPUT")) as root:
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full))
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        run = subprocess.run([sys.executable, RULES], capture_output=True, text=True, check=False,
                             env={**os.environ, "SMG_SOURCE_DIR": root})
        good = run.returncode == 0 if wanted is None else wanted in run.stdout and run.returncode == 1
        if not good:
            wrong += 1
            print(f"wanted {wanted!r} for {path}:\n{text[:200]}\ngot:\n{run.stdout}{run.stderr}")
print(f"{len(CASES)} cases, {wrong} wrong")
sys.exit(1 if wrong else 0)
