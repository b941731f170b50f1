#include "support/check_kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check_once(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                       check_arrays *a) {
    check_result r = {0};
    check_arrays_reset(g, a);
    smg_status status = check_kernel(g->ctx, k, o, a);
    if (status == SMG_OK) check_compare(g, o, a, &r);
    if (status == SMG_OK && r.pass) return;
    smg_text text;
    smg_text_init(&text, g->ctx);
    if (s != NULL) smg_sched_print(s, &text);
    smg_kernel_print(k, &text);
    fail_msg("%s on %s, %s: %s\n%s", g->name, o->target, o->by_lane ? "by lane" : "as a whole",
             status != SMG_OK ? smg_context_error(g->ctx) : "differs from the reference", smg_text_cstr(&text));
}

void check_kernel_is_right(const smg_graph *g, const smg_schedule *s, const smg_kernel *k, const check_options *o,
                           bool by_lane, check_arrays *a) {
    check_options options = *o;
    for (int lanes = 0; lanes <= by_lane; lanes++) {
        options.by_lane = lanes != 0;
        check_once(g, s, k, &options, a);
    }
}
