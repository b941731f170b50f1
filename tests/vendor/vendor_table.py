"""Runs vendor_pipelines for GPUs that are not there, and makes docs/vendors.md of what it says.

    vendor_table.py BUILD [DEVICE ...]     builds every pipeline, none of which spills; prints a table a device
    vendor_table.py BUILD --write          all devices and the small models as well, and rewrites docs/vendors.md

Mesa's drivers load because a no-op DRM shim (Debian's mesa-drm-shim; for Intel our own, built here)
pretends the device. Nothing is executed. A missing driver or shim is skipped with its reason (exit
status 77), or fails where SMG_REQUIRE_DEVICE=1.
"""

import concurrent.futures
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAYER = os.path.join("tests", "vendor", "minilm_layer.smg")
SMALL = os.path.join("tests", "models", "hf-*-tiny")  # their kernels are many: with --write only
HALVES = [LAYER, os.path.join("tests", "vendor", "bert_layer.smg"), os.path.join("tests", "models", "hf-llama-tiny")]
DOC = os.path.join(ROOT, "docs", "vendors.md")
MOST_KERNELS = 6  # of the layer, with objective dispatches

# name: (title, driver file, shim, environment)
DEVICES = {
    "navi31": ("AMD RX 7900 (navi31)", "radeon", "amdgpu", {"AMDGPU_GPU_ID": "navi31"}),
    "gfx1201": ("AMD RX 9070 (gfx1201)", "radeon", "amdgpu", {"AMDGPU_GPU_ID": "gfx1201"}),
    "dg2": ("Intel Arc A770 (dg2)", "intel", None, {"INTEL_NOOP_DEVICE": "dg2"}),
    "mtl": ("Intel Core Ultra 1 (mtl)", "intel", None, {"INTEL_NOOP_DEVICE": "mtl"}),
    "bmg": ("Intel Arc B580 (bmg)", "intel", None, {"INTEL_NOOP_DEVICE": "bmg"}),
    "adreno740": ("Qualcomm Adreno 740", "freedreno", "freedreno", {"FD_GPU_ID": "740"}),
    "m1": ("Apple M1", "asahi", "asahi", {}),
    "ampere": ("NVIDIA Ampere (NVK)", "nouveau", "nouveau", {"NOUVEAU_CHIPSET": "170"}),
}

# Kernels by matrices, in 16 bits: whose drivers have such, in layouts that are known; of bf16; and those that are tried as
# if these were not known. What it is: (words for vendor_pipelines, devices, of which without --write these alone).
MATRICES = ("navi31", "gfx1201", "dg2", "bmg", "ampere")
KINDS = {
    "f16": (["--precision", "f16"], MATRICES, MATRICES),
    "bf16": (["--precision", "bf16"], ("gfx1201", "dg2", "bmg"), ("gfx1201",)),
    "f16, opaque": (["--precision", "f16", "--opaque"], MATRICES, ("ampere",)),
    "bf16, opaque": (["--precision", "bf16", "--opaque"], ("gfx1201", "dg2", "bmg"), ()),
}

# What each compiler calls it; the values of one list are added. (NVK's "SLM size" is what a lane
# spills to, not shared memory.)
COLUMNS = {
    "registers": [["VGPRs"], ["Max live registers"], ["Registers used"], ["GPRs"], ["Number of GPRs"]],
    "shared": [["LDS size"], ["Workgroup Memory Size"]],
    "spills": [["Spilled VGPRs", "Spilled SGPRs"], ["Spills", "Fills"], ["STP Count", "LDP Count"],
               ["Spills to memory", "Fills from memory"]],
    "instructions": [["Instructions"], ["Instruction count"], ["Instruction Count"]],
}


def first(pattern):
    return next(iter(sorted(glob.glob(pattern))), None)


def surroundings(build, device):
    """The environment of a device, or the sentence that says why there is none."""
    _, driver, shim, settings = DEVICES[device]
    icd = (first(f"/usr/share/vulkan/icd.d/{driver}_icd*.json")
           or first(f"/etc/vulkan/icd.d/{driver}_icd*.json"))
    if not icd:
        return None, f"no Vulkan driver {driver} (scripts/setup.sh installs mesa-vulkan-drivers)"
    if shim:
        library = (first(f"/usr/lib/*/lib{shim}_noop_drm_shim.so")
                   or first(f"/usr/lib*/lib{shim}_noop_drm_shim.so"))
    else:
        library = first(os.path.join(build, "tests", "*intel_noop_drm.so"))
    if not library:
        return None, f"no shim for {driver} (scripts/setup.sh installs mesa-drm-shim)"
    environment = dict(os.environ, **settings)
    environment.update(LD_PRELOAD=library, VK_DRIVER_FILES=icd, MESA_SHADER_CACHE_DISABLE="true")
    for name in ("SMG_DEVICE", "SMG_VALIDATION", "VK_ICD_FILENAMES"):
        environment.pop(name, None)
    return environment, ""


def statistic(kernel, column):
    for names in COLUMNS[column]:
        found = [kernel["stats"][n] for n in names if n in kernel["stats"]]
        if found:
            return "%d" % sum(found)
    return "-"


def parse(output):
    result = {"models": {}, "failed": []}
    for line in output.splitlines():
        kind, *words = line.split("\t")
        if kind == "device":
            keys = ("name driver shared invocations subgroup_min subgroup_max selectable registers "
                    "origin").split()
            result.update(zip(keys, words))
        elif kind == "model":
            result["models"][words[0]] = plans = []
        elif kind == "objective":
            plans.append({"objective": words[0], "steps": int(words[1]), "plans": int(words[2]), "kernels": []})
        elif kind == "kernel":
            stats = {}
            for word in words[7:]:
                name, value = word.rsplit("=", 1)
                stats[name] = stats.get(name, 0) + float(value)
            plans[-1]["kernels"].append({
                "name": words[0], "local": words[1], "subgroup": words[2], "shared": words[3],
                "registers": words[4], "matrix": words[5], "writes": words[6], "stats": stats})
        elif kind == "failed":
            result["failed"].append(words[0])
    return result


def lines_of(device, result):
    size = f"{result['subgroup_min']}-{result['subgroup_max']}"
    if result["subgroup_min"] == result["subgroup_max"]:
        size = result["subgroup_min"]
    yield f"## {DEVICES[device][0]}"
    yield ""
    yield (f"`{result['name']}`, {result['driver']}. Shared memory {result['shared']} B, "
           f"{result['invocations']} invocations, subgroup {size}"
           f"{'' if result['selectable'] == '1' else ' (not selectable)'}, registers a lane "
           f"{result['registers']} ({result['origin']}).")
    for plan in result["models"][LAYER]:
        yield ""
        yield f"Objective {plan['objective']}: {plan['steps']} kernels."
        yield ""
        yield ("| kernel | writes | lanes | subgroup asked / built | registers planned / used | "
               "shared planned / used | spills | instructions |")
        yield "|---|---|---:|---:|---:|---:|---:|---:|"
        for k in plan["kernels"]:
            built = "%d" % k["stats"]["subgroup size"] if "subgroup size" in k["stats"] else "-"
            asked = k["subgroup"] if int(k["subgroup"]) > 0 else "any"
            yield (f"| {k['name']} | {k['writes']} | {k['local']} | {asked} / {built} | {k['registers']} / "
                   f"{statistic(k, 'registers')} | {k['shared']} / {statistic(k, 'shared')} | "
                   f"{statistic(k, 'spills')} | {statistic(k, 'instructions')} |")
    yield ""


HEAD = """# What the vendors' shader compilers make of our kernels

Made by `python3 tests/vendor/vendor_table.py BUILD --write`; do not edit. One encoder layer of
MiniLM (`tests/vendor/minilm_layer.smg`) is planned from the limits that each driver reports, priced
for one sequence of 128 tokens, and every pipeline is built; so are the small models of `tests/models`. No such GPU is there:
no-op DRM shims let Mesa's drivers load and compile, so there are no times and no results. Where kernels spill, the
model is planned again without them, up to eight times, as opening a model does (decision 0029); what stands here is the last plan.

"Planned" is what the compiler of smg counts before: the most 32-bit values that a lane needs at once
for tiles and factors (decision 0016), bytes of shared memory. "Registers used" is the driver's own count: VGPRs (RADV; its scheduler takes
as many as the occupancy allows), vec4 registers (Turnip), 16-bit halves (Honeykrisp), GPRs (NVK),
and for Intel the most that are live at once in a whole subgroup, of 128 in the file. "Spills" adds
what is stored to memory and loaded again (AMD: spilled registers; Adreno: STP and LDP). A dash: the
driver does not say. Subgroup "any": the kernel relies on none, the driver chooses.
"""


def spills_of(plan):
    """Of each kernel that spills."""
    spills = ((k, statistic(k, "spills")) for k in plan["kernels"])
    return [(k, int(n)) for k, n in spills if n not in ("-", "0")]


def summary_of(results):
    yield "| device | objective | kernels | planned again | kernels that spill | spills | most registers used |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for device, result in results.items():
        for plan in result["models"][LAYER]:
            spills = [n for _, n in spills_of(plan)]
            used = [int(r) for r in (statistic(k, "registers") for k in plan["kernels"]) if r != "-"]
            yield (f"| {DEVICES[device][0]} | {plan['objective']} | {plan['steps']} | "
                   f"{plan['plans'] - 1} | {len(spills)} | {sum(spills)} | {max(used, default='-')} |")
    yield ""


def small_models(results):
    yield "## Small models"
    yield ""
    yield ("Kernels of one run, of which each distinct one is built once; in brackets how often it was planned again; "
           "behind the colon the spills of each kernel that spills.")
    yield ""
    yield "| model | objective | " + " | ".join(results) + " |"
    yield "|---|---|" + "---|" * len(results)
    some = next(iter(results.values()))["models"]
    for path in (p for p in some if p != LAYER):
        for i, plan in enumerate(some[path]):
            cells = []
            for result in results.values():
                found = result["models"][path][i]
                spills = ", ".join(f"{k['name']} {n}" for k, n in spills_of(found))
                again = f" ({found['plans'] - 1})" if found["plans"] > 1 else ""
                cells.append(f"{found['steps']}{again}" + (f": {spills}" if spills else ""))
            yield f"| {os.path.basename(path)} | {plan['objective']} | " + " | ".join(cells) + " |"
    yield ""


def matrix_kernels(result):
    """[(model, objective, kernel)] of those that multiply by matrices."""
    return [(os.path.basename(path).removesuffix(".smg"), plan["objective"], k)
            for path, plans in result["models"].items() for plan in plans for k in plan["kernels"] if k["matrix"] != "-"]


KNOWN = ("Every kernel that multiplies by matrices of a layer of MiniLM, of a layer of BERT-base and of hf-llama-tiny, "
         "`--precision f16`, where a matrix's elements lie is known. Kernels that are the same for several "
         "objectives stand once.")
BRAINS = ("The same with `--precision bf16`, where the driver has matrices of it.")
HIDDEN = ("The first again, planned as if nobody knew where a matrix's elements lie: sums come by shared memory "
          "([0047](decisions/0047-opaque-sums.md)).")
HIDDEN_BRAINS = ("Those of bf16, planned in the same way.")


def halves_of(title, what, results):
    yield f"## {title}"
    yield ""
    yield what
    yield ""
    yield ("| device | model | writes | matrix | lanes | registers planned / used | shared planned / used | spills | "
           "instructions |")
    yield "|---|---|---|---|---:|---:|---:|---:|---:|"
    for device, result in results.items():
        seen = set()
        for model, _, k in matrix_kernels(result):
            line = (f"| {device} | {model} | {k['writes']} | {k['matrix']} | {k['local']} | {k['registers']} / "
                    f"{statistic(k, 'registers')} | {k['shared']} / {statistic(k, 'shared')} | "
                    f"{statistic(k, 'spills')} | {statistic(k, 'instructions')} |")
            if line not in seen:
                yield line
            seen.add(line)
    yield ""


def built(build, device, words):
    """(what vendor_pipelines says, or None; its exit status; why)"""
    environment, why = surroundings(build, device)
    if environment is None:
        return None, 77, why
    program = os.path.join(build, "tests", "vendor_pipelines")
    done = subprocess.run([program, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    return parse(done.stdout), done.returncode, done.stderr.strip()


def spilled(device, what, result):
    """Does a kernel of the last plan of something spill? It says which."""
    found = [(path, plan, k, n) for path, plans in result["models"].items() for plan in plans for k, n in spills_of(plan)]
    for path, plan, k, n in found:
        print(f"{device}: FAILED{what}: {k['name']} of {path}, objective {plan['objective']}, spills {n}")
    return bool(found)


def run_halves(build, device, models, what):
    """(result or None, exit status) of the same in 16 bits, for a device with matrices"""
    result, code, why = built(build, device, [*KINDS[what][0], *models])
    if result is None or code == 77:
        return None, 77
    if code == 0 and not matrix_kernels(result):
        code, why = 1, "no kernel multiplies by matrices"
    if code != 0:
        print(f"{device}: FAILED in {what}: {why}")
    for _, _, k in matrix_kernels(result):
        print(f"{device}, {what}, {k['matrix']}: {k['writes']}, {statistic(k, 'registers')} registers, "
              f"{statistic(k, 'spills')} spills")
    return result, 1 if spilled(device, " in " + what, result) or code != 0 else 0


def run(build, device, models):
    """(result or None, exit status)"""
    result, code, why = built(build, device, models)
    if result is None or code == 77:
        print(f"{device}: skipped: {why}")
        return None, 77
    if LAYER in result["models"]:
        print("\n".join(lines_of(device, result)))
    if code != 0:
        print(f"{device}: FAILED, exit status {code}: {why}")
        return result, 1
    plans = result["models"][LAYER]
    if not any(k["stats"] for p in plans for k in p["kernels"]):
        print(f"{device}: FAILED: the driver gives no statistics")
        return result, 1
    for plan in plans:
        if plan["objective"] == "dispatches" and plan["steps"] > MOST_KERNELS:
            print(f"{device}: FAILED: {plan['steps']} kernels, at most {MOST_KERNELS} are due")
            return result, 1
    return result, 1 if spilled(device, "", result) else 0


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    write = "--write" in sys.argv[1:]
    if not arguments or not all(d in DEVICES for d in arguments[1:]):
        print(__doc__)
        return 2
    build = os.path.abspath(arguments[0])
    models = [LAYER]
    if write:
        models += sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, SMALL)))
    results, halves, codes = {}, {what: {} for what in KINDS}, []
    devices = arguments[1:] or list(DEVICES)
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        runs = [pool.submit(run, build, device, models) for device in devices]
        matrices = [(device, what, pool.submit(run_halves, build, device, HALVES if write else HALVES[:1], what))
                    for device in devices for what, (_, every, some) in KINDS.items()
                    if device in (every if write else some)]
        for device, done in zip(devices, runs):
            result, code = done.result()
            codes.append(code)
            if result and result["models"]:
                results[device] = result
        for device, what, done in matrices:
            halves[what][device], code = done.result()
            codes.append(code)
    if write:
        if any(codes):
            print("docs/vendors.md is not written: a device failed or was skipped")
            return 1
        parts = [HEAD, "\n".join(summary_of(results)), "\n".join(small_models(results)), "\n".join(halves_of("Products by matrices", KNOWN, halves["f16"])),
                 "\n".join(halves_of("Products by matrices of bf16", BRAINS, halves["bf16"])),
                 "\n".join(halves_of("Products by opaque matrices", HIDDEN, halves["f16, opaque"])),
                 "\n".join(halves_of("Products by opaque matrices of bf16", HIDDEN_BRAINS, halves["bf16, opaque"]))]
        parts += ["\n".join(lines_of(d, r)) for d, r in results.items()]
        with open(DOC, "w", encoding="utf-8") as file:
            file.write("\n".join(parts).rstrip() + "\n")
    if 1 in codes or (77 in codes and os.environ.get("SMG_REQUIRE_DEVICE", "") == "1"):
        return 1
    return 77 if 77 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
