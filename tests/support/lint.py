"""Where clang-format and clang-tidy of the pinned version are. Other versions format and find other things, so a test
without them is skipped, or fails where SMG_REQUIRE_LINT is set."""

import os
import re
import shutil
import subprocess
import sys

ROOT = os.environ.get("SMG_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(name):
    with open(os.path.join(ROOT, "scripts", "setup.sh"), encoding="utf-8") as file:
        setup = file.read()
    folder = re.search(r'^lint_folder="\$\{SMG_LINT_DIR:-(.*)\}"$', setup, re.M).group(1)
    folder = os.environ.get("SMG_LINT_DIR") or folder
    wanted = re.search(rf"{name}==(\d+\.\d+)", setup).group(1)
    path = shutil.which(os.path.join(folder, "bin", name))
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    if re.search(rf"version {re.escape(wanted)}\.", said):
        return path
    print(f"no {name} {wanted} in {folder}: scripts/setup.sh --lint installs it")
    sys.exit(1 if os.environ.get("SMG_REQUIRE_LINT") else 77)


def tracked(*patterns):
    # The folder may belong to somebody else than who runs the tests, as in a container.
    words = ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z", "--", *patterns]
    done = subprocess.run(words, capture_output=True, check=True)
    return [name for name in done.stdout.decode().split("\0") if name and os.path.isfile(os.path.join(ROOT, name))]
