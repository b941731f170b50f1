#!/usr/bin/env bash
# Compiles src/vulkan/calibrate_*.comp and writes their words into src/vulkan/calibrate_spirv.h, which
# is committed: src/vulkan must not need a shader compiler. Run after changing one of them.
#
#   scripts/embed-calibration.sh

set -euo pipefail
cd "$(dirname "$0")/.."
out=src/vulkan/calibrate_spirv.h
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
{
    printf '/* Made by scripts/embed-calibration.sh from src/vulkan/calibrate_*.comp: SPIR-V 1.3. */\n'
    printf '#ifndef SMG_CALIBRATE_SPIRV_H\n#define SMG_CALIBRATE_SPIRV_H\n\n#include <stdint.h>\n'
    for source in src/vulkan/calibrate_*.comp; do
        name=$(basename "$source" .comp)
        glslc -O --target-env=vulkan1.1 -fshader-stage=compute "$source" -o "$temporary/$name.spv"
        spirv-val --target-env vulkan1.1 "$temporary/$name.spv"
        printf '\nstatic const uint32_t smg_%s[] = {\n' "$name"
        od -An -v -tx4 -w32 "$temporary/$name.spv" | sed -E 's/ ([0-9a-f]{8})/ 0x\1,/g; s/^ /    /'
        printf '};\n'
    done
    printf '\n#endif\n'
} >"$temporary/header"
mv "$temporary/header" "$out"
