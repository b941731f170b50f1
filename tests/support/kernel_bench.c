/* See the header. */
#include "support/kernel_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

const char bench_gates[] = "kernel gates\n"
                           "lanes 8 subgroup 4\n"
                           "symbol s\n"
                           "axis q = s tile 2 grid\n"
                           "axis g = 3 tile 3\n"
                           "axis h = 4 tile 4\n"
                           "axis d = 5 tile 8\n"
                           "grid q\n"
                           "layout 0 = [q, g, h, d] registers d*2 h*4 lanes d*4:2 subgroups q*2 repeat g*3\n"
                           "layout 1 = [q, d] registers d*2 lanes d*4:2 subgroups q*2\n"
                           "layout 2 = [q, g, d] registers d*2 lanes d*4:2 subgroups q*2 repeat g*3\n"
                           "buffer x f32 [60*s] value 0\n"
                           "buffer y f32 [5*s] value 1 written\n"
                           "buffer z f32 [15*s] value 2 written\n"
                           "tile t float register [q, g, h, d] layout 0\n"
                           "access 0 = x at [0] q*[60] g*[20] h*[5] d*[1]\n"
                           "access 1 = y at [0] q*[5] d*[1]\n"
                           "access 2 = z at [0] q*[15] g*[5] d*[1]\n"
                           "code\n"
                           "  set t = load(0)\n"
                           "  store 1 over [q, d] layout 1 = sub(t[g at 2, h at 1], t[g at 0, h at 3])\n"
                           "  store 2 over [q, g, d] layout 2 = t[g back g, h at 2]\n";

void bench_open(bench *b, const char *text) {
    memset(b, 0, sizeof *b);
    assert_int_equal(smg_context_create(NULL, &b->ctx), SMG_OK);
    assert_int_equal(smg_arena_create(b->ctx, &b->arena), SMG_OK);
    assert_int_equal(smg_sizes_create(b->arena, &b->sizes), SMG_OK);
    if (smg_kernel_parse(b->arena, b->sizes, text, &b->k) != SMG_OK) fail_msg("%s", smg_context_error(b->ctx));
}

void bench_close(bench *b) {
    smg_arena_destroy(b->arena);
    smg_context_destroy(b->ctx);
}
