# Installs into an empty folder, then builds and runs a program against what was installed: with the
# CMake package (shared and static) and with pkg-config (shared, the archive, nothing but archives), in C and in C++;
# looks at the exported symbols.
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
#include <smg/version.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    char version[32];
    smg_context *context = NULL;
    if (smg_context_create(NULL, &context) != SMG_OK) return 1;
    int bad = strcmp(smg_context_error(context), "") != 0;
    smg_context_destroy(context);
    snprintf(version, sizeof version, "%d.%d.%d", SMG_VERSION_MAJOR, SMG_VERSION_MINOR, SMG_VERSION_PATCH);
    return bad || strcmp(smg_version(), version) != 0 || strcmp(smg_status_word(SMG_OK), "ok") != 0;
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

# pkg-config: what each of the two files makes of a program. Nothing else is looked up: a user of the shared library
# need not have the dev packages of what is inside of it.
pc=$(find "$work/prefix" -name smg.pc)
library_dir=$(dirname "$(dirname "$pc")")
fail() {
    echo "$1"
    exit 1
}
pc() { PKG_CONFIG_LIBDIR="$library_dir/pkgconfig" PKG_CONFIG_PATH='' pkg-config "$@"; }
needed() { # PROGRAM: the libraries that it needs, on one line
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' '
}
# shellcheck disable=SC2046
set -- $(pc --cflags smg)
[ $# -eq 1 ] && [ -f "${1#-I}/smg/smg.h" ] ||
    fail "pkg-config --cflags smg is '$*': not the folder of the headers alone"
build() { # OUTPUT, OPTIONS...
    "$CC" -std=c11 "$work/user/main.c" -o "$@"
}
shared=$(find "$work/prefix" -name libsmg.so)
if [ -n "$shared" ]; then
    # shellcheck disable=SC2046
    set -- $(pc --libs smg)
    [ "$#:${2-}" = "2:-lsmg" ] && [ -f "${1#-L}/libsmg.so" ] || fail "pkg-config --libs smg is '$*'"
    # shellcheck disable=SC2046
    build "$work/user/with-pc" $(pc --cflags --libs smg)
    LD_LIBRARY_PATH="$library_dir" "$work/user/with-pc"
    case "$(needed "$work/user/with-pc")" in
    *libsmg.so*) ;;
    *) fail "pkg-config smg links $(needed "$work/user/with-pc")" ;;
    esac
fi
# shellcheck disable=SC2046
build "$work/user/with-archive" $(pc --cflags --libs smg-static)
"$work/user/with-archive"
case "$(needed "$work/user/with-archive")" in
*libsmg* | *shaderc* | *SPIRV* | *vulkan*) fail "pkg-config smg-static links $(needed "$work/user/with-archive")" ;;
esac

# Nothing but archives. What has none here (Debian: yyjson) is replaced by an archive of empty functions, which the
# program never calls: everything else must be there.
mkdir -p "$work/empty"
for word in $(pc --static --libs smg); do
    case "$word" in
    -lsmg) continue ;;
    -l*) name=${word#-l} ;;
    *) continue ;;
    esac
    archive=$("$CC" -print-file-name="lib$name.a")
    [ "$archive" = "lib$name.a" ] || continue
    [ "$name" = yyjson ] || fail "lib$name.a is missing"
    echo "no libyyjson.a here: an empty one in its place"
    nm -u "$(find "$work/prefix" -name libsmg.a)" |
        sed -n 's/^ *U \(yyjson_.*\)$/int \1(void);int \1(void) { return 0; }/p' >"$work/empty/$name.c"
    [ -s "$work/empty/$name.c" ] || fail "libsmg.a uses nothing of $name"
    "$CC" -std=c11 -c "$work/empty/$name.c" -o "$work/empty/$name.o"
    ar rcs "$work/empty/lib$name.a" "$work/empty/$name.o"
done
# Drivers cannot be loaded into such a program: it is told so, and compiles all the same.
cat >"$work/user/static.c" <<'END'
#include <smg/smg.h>
#include <stdio.h>
int main(void) {
    smg_context *context = NULL;
    smg_graph *graph = NULL;
    smg_model *model = NULL;
    if (smg_context_create(NULL, &context) != SMG_OK) return 1;
    const char text[] = "graph g\nx = input f32[n]\ny = neg(x)\noutput y = y\n";
    if (smg_graph_parse(context, text, sizeof text - 1, "text", &graph) != SMG_OK) return 1;
    smg_status status = smg_model_open_graph(context, graph, NULL, &model);
    puts(smg_context_error(context));
    smg_graph_destroy(graph);
    smg_context_destroy(context);
    return status != SMG_UNSUPPORTED;
}
END
for package in smg smg-static; do
    # shellcheck disable=SC2046
    "$CC" -std=c11 -static "$work/user/static.c" -o "$work/user/static" "-L$work/empty" \
        $(pc --static --cflags --libs $package) 2>"$work/link" ||
        { cat "$work/link"; fail "a static program does not link with $package"; }
    said=$("$work/user/static") || fail "a static program: $said"
    case "$said" in
    *"linked statically"* | *"without Vulkan"*) ;;
    *) fail "a static program: $said" ;;
    esac
    [ -z "$(needed "$work/user/static")" ] || fail "a static program needs $(needed "$work/user/static")"
done

# A project that uses the shared library configures where no dev package of a dependency is found.
if [ -n "$shared" ]; then
    sed '/fixed/d' "$work/user/CMakeLists.txt" >"$work/user/shared.txt"
    mkdir -p "$work/bare"
    cp "$work/user/main.c" "$work/bare"
    mv "$work/user/shared.txt" "$work/bare/CMakeLists.txt"
    PKG_CONFIG_LIBDIR="$work/empty" PKG_CONFIG_PATH='' "$SMG_CMAKE" -S "$work/bare" -B "$work/bare/build" \
        "-DCMAKE_PREFIX_PATH=$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_SPIRV-Tools=ON >>"$work/log"
    "$SMG_CMAKE" --build "$work/bare/build" >>"$work/log"
    "$work/bare/build/any"
fi

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
if [ -n "$shared" ]; then
    nm -D --defined-only "$shared" | awk '{ print $3 }' | only_public "$shared"
    objdump -p "$shared" | grep SONAME | grep -q 'libsmg\.so\.[0-9]'
fi
echo "installed package works"
