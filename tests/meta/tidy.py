"""clang-tidy (.clang-tidy) finds nothing in src/. A file is looked at again when it, a header or the configuration
changed. The analyzer follows SMG_TIDY_NODES steps of every function, 3000 unless told, 20000 with SMG_ALL_CASES; by
itself it takes 225000, most of the time of this test."""

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lint import ROOT, tool, tracked

BUILD = os.environ.get("SMG_BINARY_DIR") or os.path.join(ROOT, "build", "dev")
NODES = os.environ.get("SMG_TIDY_NODES", "20000" if "SMG_ALL_CASES" in os.environ else "3000")
CLEAN = os.path.join(BUILD, "tidy")
AT_ONCE = 16

if os.environ.get("SMG_VULKAN", "ON") == "OFF":
    print("a build without Vulkan has not all of src/")
    sys.exit(77)
clang_tidy = tool("clang-tidy")


def content(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read()


shared = hashlib.sha256(f"{clang_tidy} {NODES}".encode())
for header in [".clang-tidy", *tracked("src/*.h", "src/*.def", "include/*.h")]:
    shared.update(content(header))


def stamp_of(name):
    key = shared.copy()
    key.update(name.encode() + b"\0" + content(name))
    return os.path.join(CLEAN, key.hexdigest())


def look(names):
    """Several files a process, whose start takes as long as a small file; where there are findings, each by itself."""
    words = [clang_tidy, "--quiet", "-p", BUILD]
    for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={NODES}"):
        words.append("--extra-arg=" + word)
    done = subprocess.run([*words, *(os.path.join(ROOT, name) for name in names)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        for name in names:
            with open(stamp_of(name), "w", encoding="utf-8"):
                pass
        return []
    return [done.stdout + done.stderr] if len(names) == 1 else [text for name in names for text in look([name])]


with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
    built = {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in json.load(file)}
files = [name for name in tracked("src/*.c") if os.path.realpath(os.path.join(ROOT, name)) in built]
os.makedirs(CLEAN, exist_ok=True)
due = [name for name in files if not os.path.exists(stamp_of(name))]
with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
    found = [text for texts in pool.map(look, (due[i:i + AT_ONCE] for i in range(0, len(due), AT_ONCE))) for text in texts]
print("".join(found), end="")
print(f"{len(files)} files, {len(found)} with findings")
sys.exit(1 if found or len(files) < 100 else 0)
