"""Products by matrices on the device: of each graph the first schedule in a row of ranks that multiplies by matrices is
run with validation and checked against the reference. Sizes are no multiples of a matrix's sides."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["SMG_SOURCE_DIR"], "tests", "support"))
from smg_command import SOURCE, VULKAN, Report, folder, has_device, smg

report = Report()
if not has_device():
    print("skipped: no device")
    sys.exit(1 if VULKAN and os.environ.get("SMG_REQUIRE_DEVICE") else 77)
if "f16 f16 f32 f32" not in smg("devices", "--verbose").stdout:
    print("skipped: the device has no matrices of f16 with sums of f32")
    sys.exit(77)

environment = {"SMG_CACHE_DIR": folder("fault-matrices"), "SMG_VALIDATION": "1"}
rows = ["--dim", "rows=37"]
for name, sizes in (("linear_gelu", rows), ("mlp", rows), ("lstm", rows), ("attention", ["--dim", "b=1", "--dim", "s=77"])):
    words = [f"{SOURCE}/tests/graphs/{name}.smg", *sizes, "--precision", "f16", "--no-calibrate"]
    for rank in range(40, 161, 20):
        explained = smg("explain", *words, "--rank", str(rank), env=environment)
        report.check(explained.returncode == 0, f"explain {name}: {explained.stderr}")
        if "matrices" not in explained.stdout:
            continue
        done = smg("run", *words, "--rank", str(rank), "--check", "--repeat", "1", env=environment, timeout=240)
        report.check(done.returncode == 0 and "PASS" in done.stdout, f"{name}, rank {rank}: {done.stdout}{done.stderr}")
        print(f"{name}: rank {rank}")
        break
    else:
        report.check(False, f"{name}: none of the ranks has matrices")
sys.exit(report.finish())
