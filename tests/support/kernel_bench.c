/* See the header. */
#include "support/kernel_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

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

char *bench_changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    size_t room = strlen(text) + strlen(to) + 1;
    char *out = malloc(room);
    assert_non_null(at);
    assert_non_null(out);
    (void)snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

const char bench_ring[] = "kernel ring\n"
                          "lanes 16 subgroup 8\n"
                          "symbol m\n"
                          "axis i = m tile 8 grid\n"
                          "axis j = 13 tile 8 grid\n"
                          "axis k = 19 tile 4\n"
                          "grid i, j\n"
                          "layout 0 = [i, j] registers j*2 i*2:4 lanes j*2:2 i*2 j*2:4 subgroups i*2:2\n"
                          "layout 1 = [i, j, k] registers j*2 i*2:4 k*4 lanes j*2:2 i*2 j*2:4 subgroups i*2:2\n"
                          "buffer a f32 [19*m] value 0\n"
                          "buffer b f32 [247] value 1\n"
                          "buffer c f32 [13*m] value 2 written\n"
                          "tile acc float register [i, j] layout 0\n"
                          "tile sa float shared [i, k] pad 1 slots 2 along k clamped [i]\n"
                          "tile sb float shared [k, j] slots 3 along k clamped [j]\n"
                          "tile next float staging [i, k] clamped [i, k]\n"
                          "access 0 = a at [0] i*[19] k*[1]\n"
                          "access 1 = b at [0] k*[13] j*[1]\n"
                          "access 2 = c at [0] i*[13] j*[1]\n"
                          "code\n"
                          "  set acc = 0\n"
                          "  fetch next walk [i, k] along k ahead 0 = load(0)\n"
                          "  put sa walk [i, k] ahead 0 = next\n"
                          "  stage sb walk [j, k] ahead 0 = load(1)\n"
                          "  stage sb walk [j, k] ahead 1 = load(1)\n"
                          "  loop k\n"
                          "    barrier\n"
                          "    fetch next walk [i, k] along k ahead 1 = load(0)\n"
                          "    stage sb walk [j, k] ahead 2 = load(1)\n"
                          "    mma acc += sa * sb over [k] layout 1\n"
                          "    put sa walk [i, k] ahead 1 = next\n"
                          "  end\n"
                          "  store 2 over [i, j] layout 0 = acc\n";
