"""bench/RESULTS.md and bench/plots of a results.json of gpu_bench.py: gpu_report.py RESULTS.json FOLDER"""
import json
import math
import os
import sys

import gpu_plot
import gpu_rows

COLORS = {"smg": "#1f6feb", "smg unfused": "#9ec2f7", "PyTorch eager": "#d4762c", "PyTorch SDPA": "#b35900",
          "PyTorch compiled": "#e3b341", "ggml-vulkan": "#8250df", "by hand": "#1a7f37"}
COLUMNS = (("eager", "eager {}"), ("SDPA", "SDPA {}"), ("compiled", "compiled {}"), ("ggml-vulkan", "ggml {}"),
           ("by hand", "by hand {}"))
NOT_PYTORCH = ("ggml-vulkan", "by hand")


def by_name(results):
    return {row["name"]: row for row in results["rows"]}


def number(us):
    return f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def fastest_peers(row, precision, columns=COLUMNS):
    """{column: what is told of the fastest}, where several ways were tried; attention has its best under SDPA."""
    found = {}
    for column, pattern in columns:
        start = pattern.format(precision)
        ways = [p for name, p in row["peers"].items() if "us" in p and (name == start or name.startswith(start + " "))]
        if ways:
            found[column] = min(ways, key=lambda p: p["us"])
    return found


def peer_times(row, precision, columns=COLUMNS):
    """{column: microseconds}"""
    return {column: told["us"] for column, told in fastest_peers(row, precision, columns).items()}


def limit_of(row, wanted, precision):
    """What a result of the row may be off by: smg's limit, which knows what rounding costs, else the table's."""
    table = gpu_rows.F32_LIMIT if precision == "f32" else wanted["f16"]
    return row["smg"].get(precision, {}).get("limit", table)


def peer_cell(told, limit):
    """What a peer is off by stands with it where it tells, and that is more than the limit."""
    if not told.get("finite", True):
        return number(told["us"]) + " (not finite)"
    return number(told["us"]) + (f" ({told['error']:.1e})" if told.get("error", 0) > limit else "")


def verdict(told):
    if "error" not in told:
        return "not checked"
    right = told["finite"] and told["error"] <= told["limit"]
    return f"{told['error']:.1e}" if right else f"WRONG {told['error']:.1e}" + ("" if told["finite"] else ", not finite")


def kernels_of(told):
    return f"{told['kernels']} / {told['unfused_kernels']}" if "unfused_kernels" in told else str(told["kernels"])


def clock_of(told):
    return f"{told['mhz']:.0f} MHz, {told['watts']:.0f} W" if told.get("mhz") else ""


def markdown(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]


def is_right(told):
    return "us" in told and (not told.get("error") or told["finite"] and told["error"] <= told["limit"])


def named(results, row):
    """The row's name, with its commit and its card where they are others than the run's."""
    others = [row[what] for what in ("commit", "device") if row.get(what, results[what]) != results[what]]
    return row["name"] + (f" [{', '.join(map(str, others))}]" if others else "")


def mean(values):
    """Geometric; None of no values."""
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def tuned_cells(told, tuned):
    """Of the column of tuned plans, where the table has one."""
    return [number(told["tuned_us"]) if "tuned_us" in told else ""] * tuned


def line_of(results, row, wanted, precision, tuned):
    told, peers = row["smg"].get(precision), fastest_peers(row, precision)
    if told is None and not peers:
        return None
    told = told or {"failed": "not measured"}
    cells = [named(results, row)]
    if "failed" in told:
        cells += [f"failed: {told['failed']}", "", *tuned_cells(told, tuned), ""]
    else:
        cells += [kernels_of(told), number(told["us"]), *tuned_cells(told, tuned), number(told["unfused_us"])]
    goal = wanted["goal"] if precision == "f16" and wanted["goal"] else ""
    limit = limit_of(row, wanted, precision)
    cells += [peer_cell(peers[name], limit) if name in peers else "" for name, _ in COLUMNS] + [str(goal)]
    cells.append(verdict(told) if "us" in told else "")
    cells.append(clock_of(told))
    return "| " + " | ".join(cells) + " |"


def table(results, precision):
    known = by_name(results)
    tuned = any("tuned_us" in row["smg"].get(precision, {}) for row in results["rows"])
    lines = [line_of(results, known[w["name"]], w, precision, tuned) for w in gpu_rows.ROWS if w["name"] in known]
    head = ["work", "kernels fused / unfused", "smg", *["smg tuned"] * tuned, "smg unfused", *(name for name, _ in COLUMNS),
            "wanted", "error", "clock, power"]
    return markdown(head, [line for line in lines if line])


def mean_line(results, part, precision):
    """Of the part's rows that are right, or None: what the plan by price saves, and what tuning would save beside it."""
    rows = [row["smg"].get(precision, {}) for row in results["rows"] if row["part"] == part]
    told = [row for row in rows if is_right(row)]
    if not told:
        return None
    tuned = [t["us"] / t["tuned_us"] for t in told if "tuned_us" in t]
    cells = [f"{part}, {precision}", str(len(told)), f"{mean([t['unfused_us'] / t['us'] for t in told]):.2f}x",
             f"{max(t['us'] / t['unfused_us'] for t in told):.3f}",
             f"{mean(tuned):.3f} ({len(tuned)} rows)" if tuned else "", f"{max(tuned):.3f}" if tuned else ""]
    return "| " + " | ".join(cells) + " |"


def mean_table(results):
    lines = [mean_line(results, part, precision) for part in ("subgraphs", "models") for precision in ("f16", "f32")]
    head = ["part", "rows", "unfused / fused, geometric mean", "fused / unfused, at most", "by price / tuned, geometric mean",
            "at most"]
    return markdown(head, [line for line in lines if line])


def missing(results, rows=gpu_rows.ROWS):
    """Rows, and precisions of rows, without a figure."""
    known = by_name(results)
    found = []
    for row in rows:
        have = known.get(row["name"], {"smg": {}})["smg"]
        lack = [p for p in row["precisions"] if p not in have]
        if lack:
            found.append(row["name"] + ("" if len(lack) == len(row["precisions"]) else f" ({', '.join(lack)})"))
    return found


def failures(results):
    for row in results["rows"]:
        for name, told in row["peers"].items():
            if "failed" in told:
                yield f"{row['name']}, {name}: {told['failed']}"
            elif "unchecked" in told:
                yield f"{row['name']}, {name}: not compared with double: {told['unchecked']}"


def not_compared(results):
    """A line on peers that have times and nothing on what their results are off by, as in files of older runs, or none."""
    names = {name.split(" f16")[0].split(" f32")[0] for row in results["rows"] for name, told in row["peers"].items()
             if "us" in told and "error" not in told}
    return [f"Timed, but not or not always compared with double: {', '.join(sorted(names))}.", ""] if names else []


# How smg is timed, and what a result is held to.
TIMED = """Medians in microseconds. smg: `smg bench`, fused and unfused plans in turns, GPU
timestamps; runs of less than a millisecond many in a row, as PyTorch's are (one by one in rows of bbf26b36 and before). """
JUDGED = """Error:
||result - reference|| / ||reference|| over 64 sampled rows against double, the whole result scanned for what is not finite;
WRONG where it is above the row's limit, or above 1.05 times what rounding the reference to the result's type costs where that is
more (16 bits hold few digits of a millionth); in brackets where a peer's is"""
ROWS_SAID = """Random weights and inputs. Clock and power: medians while smg ran.
Rows with a commit or a card in brackets are of a run of that commit or on that card, peers and all.
"""
HEAD = f"""Made by `scripts/gpu-bench.sh`; do not edit. Measured on one {{device}}; what is wanted is of an {gpu_rows.GOALS_OF}.
{TIMED}PyTorch: CUDA events; f32 without TF32; SDPA: the fastest backend of `scaled_dot_product_attention`; compiled:
`torch.compile` with CUDA graphs, f16, where that takes less than a minute. smg tuned: by `smg tune` at the row's sizes, for
some seconds. ggml-vulkan: Debian's package, by the host's clock over many operations in one graph; f32 norms and softmax,
f16 factors and f32 results elsewhere. By hand: the fastest of the kernels of a folder that was given to `pack --reference`,
by that folder's runner: GPU timestamps with a barrier behind each dispatch, random inputs of its own, weights packed ahead
in GEMM and MLP stack; GELU by tanh, layers of the MLP stack with bias, f32 results of the matrix-vector product. It
compares with double, too, on samples of its own. {JUDGED}. {ROWS_SAID}"""


def page(results):
    lines = ["# The GPU table", "",
             f"{results['device']}, driver {results['driver']}, PyTorch {results['pytorch']}, commit {results['commit']}.", "",
             HEAD.format(device=results["device"]), "## Means", "", *mean_table(results), ""]
    for precision in ("f16", "f32"):
        lines += [f"## {precision}", "", *table(results, precision), ""]
        lines += [f"![{part} in {precision}](plots/{part}-{precision}.svg)" for part in ("subgraphs", "models")
                  if bar_rows(results, part, precision)]
        lines.append("")
    if "target" in results:
        lines += ["## Roofline", "", "Ceilings are the rates that smg plans with on this device.", "",
                  "![roofline](plots/roofline.svg)", ""]
    lines += not_compared(results)
    rest = missing(results)
    if rest:
        lines += ["Not measured in this run: " + "; ".join(rest) + ".", ""]
    failed = list(failures(results))
    if failed:
        lines += ["Peers that failed:", "", *(f"- {line}" for line in failed), ""]
    return "\n".join(lines).rstrip() + "\n"


def bar_rows(results, part, precision):
    rows = []
    for row in results["rows"]:
        told = row["smg"].get(precision, {})
        if row["part"] != part or not is_right(told):
            continue
        peers = peer_times(row, precision)
        times = {"smg": told["us"], "smg unfused": told["unfused_us"]}
        times.update({(name if name in NOT_PYTORCH else "PyTorch " + name): us for name, us in peers.items()})
        rows.append((row["name"], times))
    return rows


def roofline(results):
    target, series = results["target"], {}
    for precision in ("f32", "f16"):
        points = []
        for i, wanted in enumerate(gpu_rows.ROWS):
            told = by_name(results).get(wanted["name"], {"smg": {}})["smg"].get(precision, {})
            if is_right(told) and told.get("bytes") and told.get("flops"):
                points.append((i + 1, wanted["name"], told["flops"] / told["bytes"], told["flops"] / told["us"] * 1e6))
        if points:
            series[f"smg {precision}"] = points
    ceilings = [("f32", target["fma_rate"])]
    if target.get("matrix_rate"):
        ceilings.append(("f16 matrices", target["matrix_rate"]))
    colors = {"smg f32": "#d4762c", "smg f16": "#1f6feb"}
    return gpu_plot.roofline(f"Roofline, {results['device']}", ceilings, target["bandwidth"], series, colors)


def plots(results):
    found = {}
    for part in ("subgraphs", "models"):
        for precision in ("f16", "f32"):
            rows = bar_rows(results, part, precision)
            if rows:
                used = {name for _, times in rows for name in times}
                colors = {name: color for name, color in COLORS.items() if name in used}
                title = f"{part.capitalize()} in {precision}, {results['device']}: speed beside the fastest"
                found[f"{part}-{precision}.svg"] = gpu_plot.bars(title, rows, colors)
    if "target" in results:
        found["roofline.svg"] = roofline(results)
    return found


def read(path):
    """Results that were measured."""
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    if results.get("trial"):
        sys.exit(f"{path}: a trial at small sizes is no measurement")
    return results


def write(folder, name, text, plot_folder, plots_of):
    """The page, and a folder with these plots and no others."""
    at = os.path.join(folder, plot_folder)
    os.makedirs(at, exist_ok=True)
    for old in os.listdir(at):
        os.remove(os.path.join(at, old))
    for place, words in [(os.path.join(at, n), t) for n, t in plots_of.items()] + [(os.path.join(folder, name), text)]:
        with open(place, "w", encoding="utf-8") as file:
            file.write(words)


def main():
    results = read(sys.argv[1])
    write(sys.argv[2], "RESULTS.md", page(results), "plots", plots(results))


if __name__ == "__main__":
    main()
