/* glsl_register.c: registers of tiles. A tile of fragments is an array of matrices, and its register r the element
 * r % n of the lane's matrix r / n: what reads it one by one finds its elements where the layout says. */
#include "glsl_private.h"

const char *glsl_matrix_word(glsl_writer *w, smg_fragments use, const char *element) {
    static const char *const uses[] = {
        [SMG_FRAGMENTS_SUMS] = "Accumulator", [SMG_FRAGMENTS_LEFT] = "A", [SMG_FRAGMENTS_RIGHT] = "B"};
    const smg_matrix *m = &w->k->matrix;
    w->uses[GLSL_USE_MATRICES] = w->uses[GLSL_USE_SUBGROUP] = true;
    return GLSL_STRING(w, "coopmat<%s, gl_ScopeSubgroup, %d, %d, gl_MatrixUse%s>", element,
                       use == SMG_FRAGMENTS_RIGHT ? m->depth : m->rows, use == SMG_FRAGMENTS_LEFT ? m->depth : m->cols,
                       uses[use]);
}

/* bf16 is the bits of 16 everywhere else; today's language has no word for the number. */
static const char *factor_word(glsl_writer *w) {
    if (w->k->matrix.type != SMG_TYPE_BF16) return glsl_element_word(w, w->k->matrix.type);
    w->uses[GLSL_USE_BF16] = w->uses[GLSL_USE_INT16] = true;
    return "smg_bfloat16";
}

const char *glsl_register_element(glsl_writer *w, const smg_tile *tile, const char *memory) {
    bool factor = tile->fragments == SMG_FRAGMENTS_LEFT || tile->fragments == SMG_FRAGMENTS_RIGHT;
    return factor && tile->type == SMG_TYPE_BF16 ? GLSL_STRING(w, "smg_bf16_of_bits(%s)", memory) : memory;
}

const char *glsl_factor_half(glsl_writer *w, const char *word, int half) {
    w->uses[GLSL_USE_FLOAT16] = w->uses[GLSL_USE_FLOAT16] || w->k->matrix.type == SMG_TYPE_F16;
    if (w->k->matrix.type == SMG_TYPE_F16) return GLSL_STRING(w, "unpackFloat2x16(%s)[%d]", word, half);
    return GLSL_STRING(w, "smg_bf16_of_bits(unpackUint2x16(%s)[%d])", word, half);
}

const char *glsl_matrix_of(glsl_writer *w, smg_fragments use) {
    return glsl_matrix_word(w, use, use == SMG_FRAGMENTS_SUMS ? "float" : factor_word(w));
}

const char *glsl_register(glsl_writer *w, int t, const char *place) {
    const char *name = glsl_slice(w, t);
    smg_fragments use = w->k->tiles.items[t].fragments;
    if (use == SMG_FRAGMENTS_NONE) return GLSL_STRING(w, "%s[%s]", name, place);
    long long n = smg_matrix_elements(&w->k->matrix, use);
    return GLSL_STRING(w, "%s[(%s) / %lld][(%s) %% %lld]", name, place, n, place, n);
}
