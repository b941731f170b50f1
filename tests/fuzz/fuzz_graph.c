/* Bytes as graph text: what parses prints as a text that parses to the same print, survives the
 * rewrites, and prints again. */
#include "fuzz.h"

#include "rewrite/rewrite.h"

static smg_graph *parse(smg_context *ctx, const char *text, size_t size) {
    smg_graph *g = NULL;
    smg_status status = smg_graph_parse(ctx, text, size, "fuzz", &g);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (g != NULL));
    return g;
}

static void print_twice(smg_context *ctx, const smg_graph *g) {
    smg_text first;
    smg_text second;
    smg_text_init(&first, ctx);
    smg_text_init(&second, ctx);
    smg_graph_print(g, &first);
    smg_graph *again = parse(ctx, smg_text_cstr(&first), first.length);
    FUZZ_CHECK(again != NULL);
    smg_graph_print(again, &second);
    FUZZ_CHECK(strcmp(smg_text_cstr(&first), smg_text_cstr(&second)) == 0);
    smg_graph_destroy(again);
    smg_text_free(&first);
    smg_text_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    smg_context *ctx = fuzz_context();
    smg_graph *g = parse(ctx, (const char *)data, size);
    if (g != NULL) {
        smg_graph *rewritten = NULL;
        smg_rewrite_report report;
        print_twice(ctx, g);
        smg_status status = smg_rewrite_graph(g, &rewritten, &report);
        fuzz_check_status(ctx, status);
        if (status == SMG_OK) smg_graph_destroy(rewritten);
        smg_graph_destroy(g);
    }
    smg_context_destroy(ctx);
    return 0;
}
