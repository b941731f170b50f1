/* Bytes as an ONNX file: whatever converts is a graph that prints and parses back. */
#include "fuzz.h"

#include "onnx/onnx.h"

static void check_graph(smg_context *ctx, const smg_graph *graph) {
    smg_text text;
    smg_graph *again = NULL;
    smg_text_init(&text, ctx);
    smg_graph_print(graph, &text);
    if (smg_text_status(&text) == SMG_OK) {
        const char *printed = smg_text_cstr(&text);
        smg_status status = smg_graph_parse(ctx, printed, strlen(printed), "printed", &again);
        fuzz_check_status(ctx, status);
        FUZZ_CHECK(status == SMG_OK || status == SMG_MEMORY);
        FUZZ_CHECK(again == NULL || again->outputs.count == graph->outputs.count);
    }
    smg_graph_destroy(again);
    smg_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    smg_context *ctx = fuzz_context();
    smg_onnx *model = NULL;
    smg_graph *graph = NULL;
    smg_status status = smg_onnx_open_bytes(ctx, "fuzz", data, size, NULL, &model);
    fuzz_check_status(ctx, status);
    FUZZ_CHECK((status == SMG_OK) == (model != NULL));
    if (status == SMG_OK) {
        for (int i = 0; i < smg_onnx_missing_count(model); i++) FUZZ_CHECK(smg_onnx_missing_at(model, i)->node != NULL);
        status = smg_onnx_make_graph(model, &graph);
        fuzz_check_status(ctx, status);
        FUZZ_CHECK((status == SMG_OK) == (graph != NULL));
    }
    if (graph != NULL) check_graph(ctx, graph);
    smg_graph_destroy(graph);
    smg_onnx_close(model);
    smg_context_destroy(ctx);
    return 0;
}
