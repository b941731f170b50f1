"""bench/PAPER.md and bench/paper of a paper.json of gpu_bench.py --table gpu_paper: gpu_paper_report.py PAPER.json FOLDER"""
import sys

import gpu_paper
import gpu_plot
import gpu_report

PRECISION = "f16"
# part of the page -> columns of peers, as gpu_report.peer_times takes them: operation by operation first, the best last
PEERS = {
    "subgraphs": (("PyTorch eager", "eager {}"), ("PyTorch SDPA", "SDPA {}")),
    "models": (("eager attention", "eager attention {}"), ("default attention", "default attention {}")),
}
COLORS = {"smg": "#1f6feb", "smg unfused": "#9ec2f7", "PyTorch eager": "#d4762c", "PyTorch SDPA": "#b35900",
          "eager attention": "#d4762c", "default attention": "#b35900"}
HEAD = f"""Made by `scripts/paper.sh`; do not edit. The subgraphs and models of SpaceFusion's evaluation (EuroSys '25) in f16. The batch
sizes of models are the paper's, the lengths, widths and heads ours; the paper's figures are of V100, A100 and H100, and beside
ours only for orientation. {gpu_report.TIMED}PyTorch: CUDA events; HuggingFace's models with `attn_implementation="eager"` and with
its default, both run by PyTorch's eager mode, what the host takes to launch included where the GPU waits for it; smg's
figures are without the host's submission. SDPA: the fastest backend of `scaled_dot_product_attention`. Speed-ups are times
divided by smg's fused one, of plans by price, nothing tuned; means are geometric, over rows whose result is right and whose
peer ran. Tuned, where a column says so: by `smg tune` at the row's sizes, for some seconds.
{gpu_report.JUDGED}. {gpu_report.ROWS_SAID}"""


def section(row):
    """Where a row stands on the page: rows of the last part are models, too."""
    return "subgraphs" if row["part"] == "subgraphs" else "models"


def rows_of(part):
    return [row for row in gpu_paper.ROWS if section(row) == part]


def speedups(results, row, plan="us"):
    """{what: factor} of a row that is right, else {}; plan: of smg's fused plan by price, or "tuned_us" where there is one."""
    known = gpu_report.by_name(results).get(row["name"])
    told = known["smg"].get(PRECISION, {}) if known else {}
    if not gpu_report.is_right(told):
        return {}
    times, fused = gpu_report.peer_times(known, PRECISION, PEERS[section(row)]), told.get(plan, told["us"])
    found = {"smg unfused": told["unfused_us"] / fused}
    found.update({peer: us / fused for peer, us in times.items()})
    if times:
        found["best"] = min(times.values()) / fused
    return found


def factor(value):
    return f"{value:.2f}x"


def line_of(results, known, wanted, columns, tuned):
    told, row = known["smg"].get(PRECISION, {"failed": "not measured"}), gpu_report.named(results, known)
    peers, ratios = gpu_report.fastest_peers(known, PRECISION, columns), speedups(results, known)
    if "failed" in told:
        cells = [row, f"failed: {told['failed']}", "", *gpu_report.tuned_cells(told, tuned), ""]
    else:
        cells = [row, gpu_report.kernels_of(told), gpu_report.number(told["us"]),
                 *gpu_report.tuned_cells(told, tuned), gpu_report.number(told["unfused_us"])]
    limit = gpu_report.limit_of(known, wanted, PRECISION)
    cells += [gpu_report.peer_cell(peers[peer], limit) if peer in peers else "" for peer, _ in columns]
    cells += [factor(ratios[what]) if what in ratios else "" for what in ("smg unfused", *(p for p, _ in columns))]
    cells += [gpu_report.verdict(told) if "us" in told else "", gpu_report.clock_of(told)]
    return "| " + " | ".join(cells) + " |"


def tuned_rows(results, rows):
    known = gpu_report.by_name(results)
    return [row for row in rows if "tuned_us" in known.get(row["name"], {"smg": {}})["smg"].get(PRECISION, {})]


def table(results, part):
    columns, known = PEERS[part], gpu_report.by_name(results)
    tuned = bool(tuned_rows(results, rows_of(part)))
    head = ["work", "kernels fused / unfused", "smg", *["smg tuned"] * tuned, "smg unfused", *(peer for peer, _ in columns),
            "over unfused", *(f"over {peer}" for peer, _ in columns), "error", "clock, power"]
    return gpu_report.markdown(head, [line_of(results, known[row["name"]], row, columns, tuned) for row in rows_of(part)
                                      if row["name"] in known])


def means(results, rows, whats, plan):
    """{what: (geometric mean or None, rows in it)}"""
    ratios = [speedups(results, row, plan) for row in rows]
    return {what: (gpu_report.mean([r[what] for r in ratios if what in r]), sum(what in r for r in ratios)) for what in whats}


def mean_line(results, name, rows, whats, wanted, plan="us"):
    tuned = len(tuned_rows(results, rows))
    cells = [name if plan == "us" else f"{name}, {tuned} of {len(rows)} rows tuned", str(len(rows))]
    for what, (value, count) in means(results, rows, whats, plan).items():
        cell = "" if value is None else factor(value)
        if value is not None and count < len(rows):
            cell += f" ({count} of {len(rows)} rows)"
        if what in wanted and value is not None:
            cell += f" (wanted {wanted[what]:g}x: {'reached' if value >= wanted[what] else 'missed'})"
        cells.append(cell)
    told = gpu_paper.TOLD.get(name) if plan == "us" else None
    return "| " + " | ".join([*cells, f"{told[0]:g}x over {told[1]}" if told else ""]) + " |"


def mean_table(results, part):
    """The means of each family, and of the whole part."""
    rows, whats = rows_of(part), ["smg unfused", *(peer for peer, _ in PEERS[part]), "best"]
    families = list(dict.fromkeys(row["family"] for row in rows))
    lines = [mean_line(results, family, [r for r in rows if r["family"] == family], whats, {}) for family in families]
    wanted = gpu_paper.WANTED if part == "models" else {}
    lines.append(mean_line(results, part, rows, whats, wanted))
    if tuned_rows(results, rows):
        lines.append(mean_line(results, part, rows, whats, wanted, "tuned_us"))
    head = ["geometric mean", "rows", *(f"over {'PyTorch at its best' if what == 'best' else what}" for what in whats),
            "the paper's mean"]
    return gpu_report.markdown(head, lines)


def slower(results):
    """Where PyTorch wins, by how much."""
    for row in gpu_paper.ROWS:
        ratios = speedups(results, row)
        ahead = [f"{peer} by {1 / ratios[peer]:.2f}x" for peer, _ in PEERS[section(row)] if ratios.get(peer, 1) < 1]
        if ahead:
            yield f"{row['name']}: {', '.join(ahead)}"


def defaults(results):
    """A sentence on what HuggingFace's default attention is, for each model, or none."""
    known, found = gpu_report.by_name(results), {}
    for row in rows_of("models"):
        name = known.get(row["name"], {}).get("attention")
        if name and row["graph"] not in found.setdefault(name, []):
            found[name].append(row["graph"])
    told = [f"`{name}` in {', '.join(graphs)}" for name, graphs in found.items()]
    return ["HuggingFace's default attention here: " + "; ".join(told) + ".", ""] if told else []


def wrong(results):
    for row in results["rows"]:
        told = row["smg"].get(PRECISION, {})
        if not gpu_report.is_right(told):
            yield f"{row['name']}: {told['failed'] if 'failed' in told else gpu_report.verdict(told)}"


def listed(title, lines):
    lines = list(lines)
    return [title, "", *(f"- {line}" for line in lines), ""] if lines else []


def page(results):
    where = "{device}, driver {driver}, PyTorch {pytorch}, commit {commit}.".format(**results) if results["rows"] else "Not measured yet."
    lines = ["# SpaceFusion's tables", "", where, "", HEAD]
    for part in ("models", "subgraphs"):
        lines += [f"## {part.capitalize()}", "", *mean_table(results, part), "", *table(results, part), ""]
        if bar_rows(results, part):
            lines += [f"![{part}](paper/{part}.svg)", ""]
        if part == "models":
            lines += defaults(results)
    lines += gpu_report.not_compared(results)
    lines += listed("Where PyTorch is faster:", slower(results))
    lines += listed("In no mean, because the result is wrong or there is none:", wrong(results))
    lines += listed("Not run:", gpu_report.missing(results, gpu_paper.ROWS))
    lines += listed("Peers that failed:", gpu_report.failures(results))
    return "\n".join(lines).rstrip() + "\n"


def bar_rows(results, part):
    found, known = [], gpu_report.by_name(results)
    for row in rows_of(part):
        if speedups(results, row):
            told = known[row["name"]]["smg"][PRECISION]
            times = {"smg": told["us"], "smg unfused": told["unfused_us"],
                     **gpu_report.peer_times(known[row["name"]], PRECISION, PEERS[part])}
            found.append((row["name"], times))
    return found


def plots(results):
    found = {}
    for part in PEERS:
        rows = bar_rows(results, part)
        if rows:
            used = {name for _, times in rows for name in times}
            title = f"{part.capitalize()} of SpaceFusion's tables in f16, {results['device']}: speed beside the fastest"
            found[f"{part}.svg"] = gpu_plot.bars(title, rows, {n: c for n, c in COLORS.items() if n in used})
    return found


def main():
    results = gpu_report.read(sys.argv[1])
    gpu_report.write(sys.argv[2], "PAPER.md", page(results), "paper", plots(results))


if __name__ == "__main__":
    main()
