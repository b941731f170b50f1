# One SPIRV-Tools in whatever is linked (decisions/0019-one-spirv-tools.md): the command and the shared library define
# each function that smg calls once, and no library that they load defines it too.
set -eu
failed=0
found=0
for product in smg libsmg.so; do
    file="$SMG_BINARY_DIR/$product"
    [ -f "$file" ] || continue
    found=$((found + 1))
    nm "$file" >"$SMG_TEST_OUTPUT/spirv_tools.nm"
    for name in spvContextCreate spvValidate spvBinaryToText spvSoftwareVersionDetailsString; do
        count=$(awk -v name=$name '$3 == name && $2 ~ /^[Tt]$/' "$SMG_TEST_OUTPUT/spirv_tools.nm" | wc -l)
        if [ "$count" -ne 1 ]; then
            echo "$product defines $name $count times"
            failed=1
        fi
    done
    # The optimiser of shaderc's is the same copy: a function of it that only shaderc calls is inside, too.
    if ! nm -C "$file" | grep -q ' [TtWw] spvtools::Optimizer::Run'; then
        echo "$product: the optimiser is not inside"
        failed=1
    fi
    for library in $(ldd "$file" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'); do
        nm -D --defined-only "$library" >"$SMG_TEST_OUTPUT/spirv_tools.nm"
        if grep -q ' spvValidate$' "$SMG_TEST_OUTPUT/spirv_tools.nm"; then
            echo "$product loads $library, which defines spvValidate as well"
            failed=1
        fi
    done
done
[ $found -gt 0 ] || { echo "no product in $SMG_BINARY_DIR"; exit 1; }
[ $failed -eq 0 ] && echo "one SPIRV-Tools in each of $found products"
