/* See the header. */
#include "support/kernel_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
