"""The caches (plans, SPIR-V, pipelines, calibration, proofs): damaged files are noticed and made anew, folders that
cannot be written are survived, several processes share one folder, a killed one leaves no harm."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SMG, SOURCE, VULKAN, Report, folder, has_device, read, smg, write

work = folder("fault-caches")
cache = f"{work}/cache"
report = Report()
words = ["run", f"{SOURCE}/tests/graphs/softmax.smg", "--dim", "rows=3", "--check", "--repeat", "1"]
fast = ["--no-calibrate"]
# The driver's own cache would hide that ours is missing.
environment = {"SMG_CACHE_DIR": cache, "MESA_SHADER_CACHE_DISABLE": "true", "SMG_VALIDATION": "0"}


def run(what, warning=None, extra=(), **changes):
    """A run that passes its check, with this warning or none; gives the modules taken from the cache."""
    done = smg(*words, *extra, env={**environment, **changes})
    report.check(done.returncode == 0 and "PASS" in done.stdout, f"{what}: status {done.returncode}, {done.stderr}")
    lines = done.stderr.splitlines()
    good = all(line.startswith("smg: warning: ") for line in lines)
    if warning is None:
        good = lines == []
    else:
        good = good and any(warning in line for line in lines)
    report.check(good, f"{what}: wanted warning {warning}, got {done.stderr!r}")
    found = re.search(r"\((\d+) modules, (\d+) from the cache\)", done.stdout)
    report.check(found is not None, f"{what}: {done.stdout}")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def cached_files():
    return sorted(os.path.join(at, name) for at, _, names in os.walk(cache) for name in names)


def damages(good):
    """Damaged forms of a file by name."""
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0x10
    last = bytearray(good)
    last[-1] ^= 1
    return {"empty": b"", "half": good[: len(good) // 2], "flipped bit": bytes(flipped), "last byte": bytes(last),
            "one byte short": good[:-1], "one byte long": good + b"\0", "header only": good[:40],
            "zeros": bytes(len(good)), "first 7 bytes": good[:7], "another magic": b"X" + good[1:]}


def kind_of(path):
    return os.path.basename(os.path.dirname(path))


def all_cached(what, extra):
    modules, cached = run(what, None, extra)
    report.check(modules == cached and modules > 0, f"{what}: {cached} of {modules} modules from the cache")


def reach(path):
    """SPIR-V is looked for only where there is no plan."""
    if kind_of(path) == "spirv":
        shutil.rmtree(f"{cache}/plans", ignore_errors=True)


def test_damage():
    """Without calibration: measured rates may change the plan, and then other modules are asked for."""
    run("cold", None, fast)
    all_cached("warm", fast)
    kinds = {kind_of(path) for path in cached_files()} - {"modules"}  # where drivers tell of spills
    report.check(kinds == {"plans", "spirv", "pipelines"}, f"caches: {cached_files()}")
    for path in cached_files():
        good = read(path)
        for name, bad in damages(good).items():
            write(path, bad)
            reach(path)
            modules, cached = run(f"{path}, {name}", "damaged", fast)
            report.check(cached == modules - (kind_of(path) == "spirv"), f"{path}, {name}: {cached} of {modules}")
            report.check(read(path) != bad, f"{path}, {name}: the file was not made anew")
        all_cached(f"{path}, after", fast)
    for path in cached_files():  # a folder where a file belongs: as good as no cache
        os.remove(path)
        os.makedirs(path)
        reach(path)
        run(f"folder {path}", "could not be written", fast)
        os.rmdir(path)


CALIBRATIONS = 5  # a busy machine may keep the table's values, and nothing is written


def test_calibration():
    for _ in range(CALIBRATIONS):
        run("first calibration")
        paths = [path for path in cached_files() if kind_of(path) == "calibration"]
        if paths:
            break
    (path,) = paths
    good = read(path)
    os.utime(path, (0, 0))
    run("second run")
    report.check(os.path.getmtime(path) == 0, "the calibration was made again")
    forms = damages(good)
    for name in ("empty", "flipped bit", "last byte"):
        write(path, forms[name])
        for _ in range(CALIBRATIONS):
            run(f"calibration, {name}", "damaged")
            if read(path) != forms[name]:
                break
        report.check(read(path) != forms[name], f"calibration, {name}: the file was not made anew")
        run(f"calibration, {name}, after")


def test_proofs():
    """What was tried does not depend on the time of day: the same file again."""
    for path in [path for path in cached_files() if kind_of(path) == "proofs"]:
        os.remove(path)
    run("first proof")
    (path,) = [path for path in cached_files() if kind_of(path) == "proofs"]
    good = read(path)
    os.utime(path, (0, 0))
    run("second run")
    report.check(os.path.getmtime(path) == 0, "features were tried again")
    for name, bad in damages(good).items():
        write(path, bad)
        run(f"proof, {name}", "damaged")
        report.check(read(path) == good, f"proof, {name}: the file was not made anew")
    done = smg("devices", "--verbose", env=environment)
    kept = [line[2:] for line in good.decode().splitlines() if line.startswith(("# passed ", "# failed "))]
    shown = [line[2:] for line in done.stdout.splitlines() if line.startswith("# ") and ": " in line]
    for word, what in (line.split(" ", 1) for line in kept):
        told = f"{what}: passed" if word == "passed" else what.replace(": ", ": failed: ", 1)
        report.check(told in shown, f"devices --verbose lacks '{told}': {done.stdout}")
    report.check(len(kept) >= 5, f"verdicts: {kept}")


def test_plans():
    """A second run plans nothing and says so; other options do."""
    shutil.rmtree(cache, ignore_errors=True)
    for extra, known in (([], False), ([], True), (["--unfused"], False), (["--unfused"], True), (["--rank", "1"], False)):
        done = smg(*words, *fast, *extra, "--json", env=environment)
        result = json.loads(done.stdout) if done.returncode == 0 else {}
        report.check(result.get("plan_cached") is known, f"run {extra}: plan_cached is not {known}: {done.stderr}")
    done = smg(*words, *fast, "--profile", env=environment)
    report.check("plan and SPIR-V from the cache" in done.stdout and "bandw." in done.stdout, f"profile: {done.stdout}")
    done = smg("bench", *words[1:4], "--repeat", "5", *fast, env=environment)
    report.check("plan from the cache" in done.stdout, f"bench: {done.stdout} {done.stderr}")


def test_unwritable():
    run("below a file", "could not be written", fast, SMG_CACHE_DIR=f"{write(f'{work}/file', 'x')}/cache")
    run("in /proc", "could not be written", fast, SMG_CACHE_DIR="/proc/smg-cache")
    run("off", None, fast, SMG_CACHE_DIR="")
    run("no home", None, fast, SMG_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=None)
    run("XDG", None, fast, SMG_CACHE_DIR=None, XDG_CACHE_HOME=f"{work}/xdg")
    report.check(os.path.isdir(f"{work}/xdg/smg/spirv"), "XDG_CACHE_HOME is not used")
    if os.geteuid() != 0:
        os.makedirs(f"{work}/locked")
        os.chmod(f"{work}/locked", 0o500)
        run("locked", "could not be written", fast, SMG_CACHE_DIR=f"{work}/locked")


def start(extra):
    return subprocess.Popen([SMG, *words, *extra], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def test_processes():
    for extra in ([], fast):
        shutil.rmtree(cache, ignore_errors=True)
        running = [start(extra) for _ in range(4)]
        for process in running:
            out, err = process.communicate(timeout=240)
            report.check(process.returncode == 0 and "PASS" in out and err == "",
                         f"one of four at once: {process.returncode} {err}")
        left = [path for path in cached_files() if path.endswith(".tmp")]
        report.check(left == [], f"four at once leave {left}")
    all_cached("after four at once", fast)


def test_killed():
    shutil.rmtree(cache, ignore_errors=True)
    for ending in (signal.SIGKILL, signal.SIGINT):
        for wait in (0.05, 0.15, 0.3, 0.5):
            process = start(fast)
            time.sleep(wait)
            process.send_signal(ending)
            process.communicate()
    run("after killed ones", None, fast)
    all_cached("after killed ones, again", fast)


if not has_device():
    print("skipped: no Vulkan device")
    sys.exit(1 if VULKAN and os.environ.get("SMG_REQUIRE_DEVICE") else 77)
test_damage()
test_calibration()
test_proofs()
test_plans()
test_unwritable()
test_processes()
test_killed()
sys.exit(report.finish())
