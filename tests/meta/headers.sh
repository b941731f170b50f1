# Each public header compiles alone, as C11 and as C++11, with warnings as errors; and each front
# header of src/ compiles alone as C11.
set -u
source_dir=${SMG_SOURCE_DIR:-$PWD}
failed=0
count=0
check() { # compiler, options..., header: as the only line of a file
    local header="${*: -1}"
    count=$((count + 1))
    if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
        "${@:1:$#-1}" -fsyntax-only -; then
        echo "FAILED: $header with: ${*:1:$#-1}"
        failed=$((failed + 1))
    fi
}
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
has_vulkan=0
[ "${SMG_VULKAN:-ON}" = ON ] && has_vulkan=1
cd "$source_dir/include" || exit 1
for header in smg/*.h; do
    [ "$header" = smg/vulkan.h ] && [ $has_vulkan = 0 ] && continue
    check "${CC:-cc}" -x c -std=c11 "${warnings[@]}" -Wstrict-prototypes -I. "$header"
    check "${CXX:-c++}" -x c++ -std=c++11 "${warnings[@]}" -I. "$header"
done
# What a Windows compiler makes of SMG_API: a consumer of the DLL imports, the library exports, the static one neither.
api() { # wanted, options...
    local got
    count=$((count + 1))
    got=$(printf '#include "smg/status.h"\nis:SMG_API;\n' |
        "${CC:-cc}" -D_WIN32 "${@:2}" -I. -E -P - | sed -n 's/^is://p')
    if [ "$(echo "$got" | tr -d ' ')" != "$1;" ]; then
        echo "FAILED: SMG_API is '$got', wanted '$1', with: -D_WIN32 ${*:2}"
        failed=$((failed + 1))
    fi
}
api '__declspec(dllimport)'
api '__declspec(dllexport)' -DSMG_BUILD
api '' -DSMG_STATIC
api '' -DSMG_STATIC -DSMG_BUILD
cd "$source_dir/src" || exit 1
for header in */*.h; do
    case "$header" in
        cli/* | *_private.h | *_internal.h) continue ;;
        vulkan/* | program/*) [ $has_vulkan = 1 ] || continue ;;
    esac
    check "${CC:-cc}" -x c -std=c11 "${warnings[@]}" -DVK_NO_PROTOTYPES -DSMG_VULKAN=$has_vulkan \
        -I. -I../include "$header"
done
echo "$count checks, $failed failed"
[ $failed = 0 ]
