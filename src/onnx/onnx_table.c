/* The table of operators, sorted by the compiler's initialiser into what smg_onnx_find_op searches, and
 * the functions that stand for "none" in it. */
#include "onnx/onnx_build.h"

static const smg_onnx_op table[] = {
#define ONNX_OP(word, domain, min_inputs, max_inputs, convert, evaluate)                                               \
    {word, domain, min_inputs, max_inputs, smg_onnx_convert_##convert, smg_onnx_sizes_##evaluate},
#include "onnx/onnx_ops.def"
#undef ONNX_OP
};

const smg_onnx_op *smg_onnx_find_op(const char *domain, const char *word) {
    for (size_t i = 0; i < SMG_COUNT_OF(table); i++)
        if (strcmp(table[i].word, word) == 0 && strcmp(table[i].domain, domain) == 0) return &table[i];
    return NULL;
}

smg_status smg_onnx_convert_none(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "its result cannot be computed from the sizes of the inputs alone");
}

smg_status smg_onnx_sizes_none(smg_onnx_build *b, const smg_onnx_node *n, bool *out_done) {
    (void)b, (void)n;
    *out_done = false;
    return SMG_OK;
}

smg_status smg_onnx_convert_identity(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_set_same(b, n, 0, n->inputs[0]);
}
