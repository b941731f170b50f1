"""What tests of the command share: running it in a clean environment, and folders to write to."""
import functools
import os
import shutil
import subprocess

SOURCE = os.environ.get("SMG_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("SMG_BINARY_DIR") or os.path.join(SOURCE, "build", "dev")
SMG = os.path.join(BINARY, "smg")
OUTPUT = os.environ.get("SMG_TEST_OUTPUT") or os.path.join(BINARY, "test-output")
VULKAN = os.environ.get("SMG_VULKAN", "ON") not in ("OFF", "0", "")


def folder(name):
    """A new empty folder below the test output."""
    path = os.path.join(OUTPUT, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def smg(*words, env=None, stdin=b"", timeout=120):
    """Runs the command; env: what differs from this process, None unsets. Output as text. Without
    validation, which other tests have: the layer takes longer than these runs, and speaks up. The CPU driver does
    not optimise (device_compiles_plainly)."""
    environment = {**os.environ, "SMG_VALIDATION": "0"}
    if "SMG_ALL_CASES" not in environment:
        environment.setdefault("GALLIVM_PERF", "nopt")
    for name, value in (env or {}).items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    done = subprocess.run([SMG, *words], input=stdin, capture_output=True, env=environment, timeout=timeout)
    done.stdout = done.stdout.decode(errors="replace")
    done.stderr = done.stderr.decode(errors="replace")
    return done


@functools.cache
def has_device():
    return VULKAN and smg("devices", "--json").returncode == 0


class Report:
    """Collects failures, so that one run shows all of them."""

    def __init__(self):
        self.count = 0
        self.failures = []

    def check(self, condition, text):
        self.count += 1
        if not condition:
            self.failures.append(text)

    def refusal(self, words, done, *parts):
        """Exit status 2 and exactly one sentence on stderr that has the parts; nothing on stdout."""
        said = done.stderr.splitlines()
        sentences = [line for line in said if not line.startswith("smg: warning: ")]
        good = (done.returncode == 2 and len(sentences) == 1 and sentences[0].startswith("smg: ")
                and len(sentences[0]) > 10 and done.stdout == "" and all(part in sentences[0] for part in parts))
        self.check(good, f"smg {' '.join(words)}: status {done.returncode}, wanted 2 and {parts};\n"
                         f"  stderr {done.stderr[:500]!r}, stdout {done.stdout[:200]!r}")

    def finish(self):
        for failure in self.failures:
            print(failure)
        print(f"{self.count - len(self.failures)} of {self.count} checks hold")
        return 1 if self.failures or self.count == 0 else 0
