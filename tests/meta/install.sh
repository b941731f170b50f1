# Installs into an empty folder, then builds and runs a program against what was installed: with the
# CMake package (shared and static) and with pkg-config, in C and in C++; looks at the exported symbols.
set -eu
if [ -n "${SMG_SANITIZE:-}" ]; then
    echo "skipped: a sanitized library is not installed"
    exit 77
fi
work="$SMG_TEST_OUTPUT/install"
rm -rf "$work"
mkdir -p "$work/user"
"$SMG_CMAKE" --install "$SMG_BINARY_DIR" --prefix "$work/prefix" >"$work/log"

cat >"$work/user/main.c" <<'END'
#include <smg/context.h>
#include <string.h>
int main(void) {
    smg_context *context = NULL;
    if (smg_context_create(NULL, &context) != SMG_OK) return 1;
    int bad = strcmp(smg_context_error(context), "") != 0;
    smg_context_destroy(context);
    return bad || strcmp(smg_status_word(SMG_OK), "ok") != 0;
}
END
cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(user C CXX)
find_package(smg 0.1 REQUIRED)
configure_file(main.c main_cpp.cpp COPYONLY)
add_executable(any main.c)
target_link_libraries(any PRIVATE smg::smg)
add_executable(fixed ${CMAKE_CURRENT_BINARY_DIR}/main_cpp.cpp)
target_link_libraries(fixed PRIVATE smg::static)
END
"$SMG_CMAKE" -S "$work/user" -B "$work/user/build" "-DCMAKE_PREFIX_PATH=$work/prefix" >>"$work/log"
"$SMG_CMAKE" --build "$work/user/build" >>"$work/log"
"$work/user/build/any"
"$work/user/build/fixed"

pc=$(find "$work/prefix" -name smg.pc)
library_dir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$(dirname "$pc")"
options=$(pkg-config --cflags --libs smg)
# shellcheck disable=SC2086
"$CC" -std=c11 "$work/user/main.c" -o "$work/user/with-pc" $options
LD_LIBRARY_PATH="$library_dir" "$work/user/with-pc"

# What the headers mark SMG_API, and nothing else, is defined: the other symbols would be the host's too, which may
# link a loader of Vulkan, volk or libraries of its own with functions of the same names.
case "$SMG_VULKAN" in
OFF | 0 | FALSE | NO) without=vulkan.h ;; # a host's device, which the compiler alone cannot take
*) without= ;;
esac
find "$work/prefix/include/smg" -name '*.h' ! -name "$without" -exec cat {} + | tr '\n' ' ' |
    grep -oE 'SMG_API [^(;]*\(' | grep -oE 'smg_[a-z0-9_]+\($' | tr -d '(' | sort -u >"$work/public"
only_public() { # LIBRARY: its defined symbols on stdin
    sort -u >"$work/defined"
    if ! diff "$work/public" "$work/defined" >"$work/diff"; then
        echo "$1: not what the headers declare (< declared, > defined):"
        head -n 20 "$work/diff"
        exit 1
    fi
}
[ "$(wc -l <"$work/public")" -gt 40 ]
static=$(find "$work/prefix" -name libsmg.a)
nm -g --defined-only "$static" | awk 'NF == 3 { print $3 }' | only_public "$static"
shared=$(find "$work/prefix" -name libsmg.so)
if [ -n "$shared" ]; then
    nm -D --defined-only "$shared" | awk '{ print $3 }' | only_public "$shared"
    objdump -p "$shared" | grep SONAME | grep -q 'libsmg\.so\.[0-9]'
fi
echo "installed package works"
