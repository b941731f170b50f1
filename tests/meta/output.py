"""Tests write below $SMG_TEST_OUTPUT only: one place in C knows the variable, every program that asks it is
run from a folder of its own, with the variable and without, and a look at that folder says what it wrote.
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from smg_command import BINARY, OUTPUT, SOURCE, Report, folder, read  # noqa: E402

OWN = ("tests/support/output.c", "tests/support/smg_command.py", "tests/meta/output.py")
WRITES = re.compile(r"\b(?:smg_file_write_atomic|smg_path_make_dirs|smg_npy_write|smg_tensor_save|mkdtemp|mkstemp|mkdir|"
                    r"fopen\s*\([^;]*\"[wa]b?\")")
SKIPPED = 77  # no device here
report = Report()


def sources():
    for base, _, names in os.walk(os.path.join(SOURCE, "tests")):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".py", ".sh", ".cmake")):
                path = os.path.join(base, name)
                yield os.path.relpath(path, SOURCE), read(path).decode()


def program_of(path):
    return os.path.join(BINARY, "tests", os.path.splitext(os.path.basename(path))[0])


def is_long(path):
    """Among the longest tests: ctest has run it with the variable already."""
    name = os.path.splitext(path)[0].replace("tests/", "", 1).replace("/test_", ".")
    return re.search(rf"^{re.escape(name)} ", read(os.path.join(SOURCE, "tests", "costs")).decode(), re.M) is not None


def below(path):
    return sorted(os.path.relpath(os.path.join(base, name), path)
                  for base, folders, names in os.walk(path) for name in folders + names)


# One place knows the variable, none has another folder up its sleeve, and who writes asks it.
programs = []
for path, text in sources():
    if path in OWN:
        continue
    if path.endswith((".c", ".h")):
        report.check('getenv("SMG_TEST_OUTPUT")' not in text, f"{path}: test_output (support/output.h) gives the folder")
        writes = WRITES.search(text) is not None
        asks = "test_output(" in text
        report.check(asks or not writes, f"{path}: writes, and does not ask test_output (support/output.h) where")
        if asks and re.search(r"(^|/)test_\w+\.c$", path):
            programs.append(path)
    report.check(re.search(r"[\"'= ]/(?:var/)?tmp\b", text) is None, f"{path}: names a folder for temporary files")
    report.check(re.search(r"mktemp\b(?! -[dp]+ [^ ]*SMG_TEST_OUTPUT)", text) is None or path.endswith(".c"),
                 f"{path}: mktemp outside of SMG_TEST_OUTPUT")
report.check(len(programs) >= 7, f"only {len(programs)} programs write: {programs}")

# From a folder that has nothing but the files to read, with the variable and without it.
work = folder("output")
for path in programs:
    program = program_of(path)
    if not os.path.exists(program):
        report.check(False, f"{program} is not there")
        continue
    for given in (False,) if is_long(path) else (True, False):
        here, there, caches = (os.path.join(work, name) for name in ("here", "there", "caches"))
        for name in (here, there, caches):
            shutil.rmtree(name, ignore_errors=True)
            os.makedirs(name)
        for name in ("tests", "docs"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(here, name))
        # Drivers and the validation layer keep files of their own: in TMPDIR where a user has no folder for caches.
        environment = {**os.environ, "SMG_TEST_OUTPUT": there, "TMPDIR": here, "XDG_CACHE_HOME": caches}
        if not given:
            del environment["SMG_TEST_OUTPUT"]
        done = subprocess.run([program], cwd=here, env=environment, capture_output=True, timeout=200, check=False)
        said = (done.stdout + done.stderr).decode(errors="replace")
        stray = [name for name in below(here) if name not in ("tests", "docs")]
        report.check(stray == [], f"{path}: wrote {stray} into the folder it was started in")
        report.check(not os.path.exists(os.path.join(caches, "smg")), f"{path}: wrote into the user's folder for caches")
        if given:
            report.check(done.returncode in (0, SKIPPED), f"{path}: exit status {done.returncode}:\n{said[-2000:]}")
        else:
            told = done.returncode == SKIPPED or "SMG_TEST_OUTPUT" in said
            report.check(done.returncode != 0 and told,
                         f"{path}: without SMG_TEST_OUTPUT, exit status {done.returncode}:\n{said[-500:]}")
            report.check(below(there) == [], f"{path}: wrote {below(there)} without being told to")

sys.exit(report.finish())
