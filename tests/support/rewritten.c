/* See the header. */
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void look(smg_context *ctx, const char *text, const char *before_it, bool at_once, const char *expected) {
    smg_graph *before = NULL, *after = NULL;
    smg_text printed;
    if (smg_graph_parse(ctx, text, strlen(text), "test", &before) != SMG_OK ||
        smg_rewrite_graph(before, &after, NULL) != SMG_OK)
        fail_msg("%s", smg_context_error(ctx));
    smg_text_init(&printed, ctx);
    smg_graph_print(after, &printed);
    const char *from = strstr(smg_text_cstr(&printed), before_it);
    if (from) from += strlen(before_it);
    bool found = from && (at_once ? strncmp(from, expected, strlen(expected)) == 0 : strstr(from, expected) != NULL);
    if (!found) fail_msg("\"%s%s\" is not in\n%s", before_it, expected, smg_text_cstr(&printed));
    smg_text_free(&printed);
    smg_graph_destroy(after);
    smg_graph_destroy(before);
}

void assert_rewritten_has(smg_context *ctx, const char *text, const char *expected) {
    look(ctx, text, "", false, expected);
}

void assert_y_becomes(smg_context *ctx, const char *text, const char *expected) {
    look(ctx, text, "\ny = ", true, expected);
}
