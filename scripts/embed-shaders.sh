#!/usr/bin/env bash
# Compiles src/vulkan/calibrate_*.comp, resident_*.comp and prove_*.comp and writes their words into headers beside
# them, which are committed: src/vulkan must not need a shader compiler. A line `// variant: NAME OPTIONS` in a shader asks for
# smg_FILE_NAME made with these options. Run after changing one of them.
#
#   scripts/embed-shaders.sh

set -euo pipefail
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# SOURCE NAME OPTION...
embed() {
    local source=$1 name=$2
    shift 2
    glslc -O --target-env=vulkan1.1 -fshader-stage=compute "$@" "$source" -o "$temporary/$name.spv"
    spirv-val --target-env vulkan1.1 "$temporary/$name.spv"
    printf '\nstatic const uint32_t smg_%s[] = {\n' "$name"
    od -An -v -tx4 -w32 "$temporary/$name.spv" | sed -E 's/ ([0-9a-f]{8})/ 0x\1,/g; s/^ /    /'
    printf '};\n'
}

for kind in calibrate resident prove_small prove_matrix prove_rate; do
    guard=SMG_${kind^^}_SPIRV_H
    {
        printf '/* Made by scripts/embed-shaders.sh from src/vulkan/%s*.comp: SPIR-V 1.3. */\n' "$kind"
        printf '#ifndef %s\n#define %s\n\n#include <stdint.h>\n' "$guard" "$guard"
        for source in src/vulkan/"$kind"*.comp; do
            name=$(basename "$source" .comp)
            if grep -q '^// variant:' "$source"; then
                while read -r variant options; do
                    # shellcheck disable=SC2086
                    embed "$source" "${name}_$variant" $options
                done < <(sed -n 's,^// variant: ,,p' "$source")
            else
                embed "$source" "$name"
            fi
        done
        printf '\n#endif\n'
    } >"$temporary/header"
    mv "$temporary/header" "src/vulkan/${kind}_spirv.h"
done
