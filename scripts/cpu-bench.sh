#!/usr/bin/env bash
# Fused against unfused on this machine's CPU (Mesa's lavapipe): rows of 1024 columns, and a sentence encoder when its
# folder is given. Every line is one `smg bench`: both plans interleaved in one run, medians of device timestamps.
# Prints a table with PASS or MISS against "fused is faster"; meant for an idle machine.
#
#   scripts/cpu-bench.sh [MODEL_DIR] [> bench/RESULTS-cpu.md]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
smg=build/release/smg
[ -x "$smg" ] || scripts/build.sh >&2
lavapipe=(/usr/share/vulkan/icd.d/lvp_icd*.json)
export VK_DRIVER_FILES="${VK_DRIVER_FILES:-${lavapipe[0]}}"

row() { # name, arguments of smg bench...
    local name="$1"
    shift
    "$smg" bench "$@" --json | python3 -c '
import json, sys
run = json.load(sys.stdin)
fused, unfused = run["fused"], run["unfused"]
ratio = unfused["seconds"] / fused["seconds"]
verdict = "PASS" if ratio > 1 else "MISS"
kernels = "%d / %d" % (fused["kernels"], unfused["kernels"])
print("| %s | %s | %.2f | %.2f | %.2f | %s |" % (sys.argv[1], kernels, fused["seconds"] * 1e3, unfused["seconds"] * 1e3,
                                                 ratio, verdict))' "$name"
}

echo "$(nproc) cores, $("$smg" devices | grep -m1 -io "llvmpipe mesa [^,]*"), commit $(git rev-parse --short HEAD)."
echo
echo "| work | kernels fused / unfused | fused ms | unfused ms | unfused / fused | fused is faster |"
echo "|---|---|---|---|---|---|"
for graph in softmax layernorm rmsnorm gelu_tanh cross_entropy; do
    row "$graph 4096x1024 f32" "bench/graphs/columns1024/$graph.smg" --dim rows=4096
done
if [ $# -gt 0 ]; then row "encoder b1 s128 f32" "$1" --dim batch=1 --dim sequence=128; fi
