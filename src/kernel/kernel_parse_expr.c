/* Expressions of kernel text: calls of primitives over constants, tiles and leaves, with labels for
 * parts that occur twice. Kinds are checked here as far as making the expression needs it; the rest is
 * the verifier's. */
#include "kernel/kernel_parse.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#define DEEPEST 400

static smg_status read_expr(kernel_reader *r, smg_expr *out_expr);

static smg_status made(kernel_reader *r, smg_expr expr, smg_expr *out_expr) {
    if (expr == SMG_EXPR_NONE) return smg_fail(r->ctx, SMG_MEMORY, "kernel text, line %d: out of memory", r->line);
    *out_expr = expr;
    return SMG_OK;
}

/* ---- leaves ---------------------------------------------------------------------------------------- */

static smg_status make_leaf(kernel_reader *r, smg_kleaf leaf, smg_expr *out_expr) {
    smg_kernel *k = r->k;
    int number = 0;
    while (number < k->leaves.count && !smg_kleaf_equal(&k->leaves.items[number], &leaf)) number++;
    if (number == k->leaves.count) {
        smg_kleaf *slot = SMG_ARRAY_PUSH(r->arena, &k->leaves);
        if (!slot) return SMG_MEMORY;
        *slot = leaf;
    }
    return made(r, smg_expr_leaf(k->exprs, leaf.kind, number), out_expr);
}

static smg_status read_pick(kernel_reader *r, smg_layout_pick *out) {
    *out = (smg_layout_pick){.from = -1};
    SMG_TRY(kernel_read_axis(r, &out->axis));
    if (kernel_read_keyword(r, "back")) return kernel_read_axis(r, &out->from);
    SMG_TRY(kernel_read_word(r, "at"));
    return kernel_read_integer(r, 0, INT32_MAX, &out->at);
}

static smg_status read_tile_leaf(kernel_reader *r, smg_expr *out_expr) {
    smg_kleaf leaf = {.what = SMG_KLEAF_TILE};
    SMG_TRY(kernel_read_tile(r, &leaf.index));
    leaf.kind = smg_tile_kind(&r->k->tiles.items[leaf.index]);
    bool open = kernel_read_take(r, "[");
    for (bool more = open; more; more = kernel_read_take(r, ",")) {
        if (leaf.pick_count == SMG_LAYOUT_PICKS) return kernel_read_fail(r, "fewer axes in a list");
        SMG_TRY(read_pick(r, &leaf.pick[leaf.pick_count++]));
    }
    if (open) SMG_TRY(kernel_read_sign(r, "]"));
    return make_leaf(r, leaf, out_expr);
}

static smg_status read_access_leaf(kernel_reader *r, smg_kleaf_kind what, smg_expr *out_expr) {
    smg_kleaf leaf = {.what = what, .kind = SMG_KIND_INT};
    SMG_TRY(kernel_read_sign(r, "("));
    SMG_TRY(kernel_read_int(r, 0, r->k->accesses.count - 1, &leaf.index));
    int buffer = r->k->accesses.items[leaf.index].buffer;
    if (what == SMG_KLEAF_LOAD) {
        if (buffer < 0) return kernel_read_fail(r, "an access of a buffer");
        leaf.kind = smg_type_kind(r->k->buffers.items[buffer].type);
    }
    SMG_TRY(kernel_read_sign(r, ")"));
    return make_leaf(r, leaf, out_expr);
}

static smg_status read_size_leaf(kernel_reader *r, smg_kind kind, smg_expr *out_expr) {
    smg_kleaf leaf = {.what = SMG_KLEAF_SIZE, .kind = kind};
    SMG_TRY(kernel_read_sign(r, "("));
    SMG_TRY(kernel_read_size(r, &leaf.size));
    SMG_TRY(kernel_read_sign(r, ")"));
    return make_leaf(r, leaf, out_expr);
}

/* ---- constants ------------------------------------------------------------------------------------- */

/* A number at r->at; strtod wants the decimal point of the process's locale, text always has '.'. */
static smg_status read_number(kernel_reader *r, smg_expr *out_expr) {
    char buffer[64];
    size_t used = 0;
    const char *point = localeconv()->decimal_point, *at = r->at;
    for (; used + 8 < sizeof buffer; at++) {
        bool exponent_sign = at > r->at && (at[-1] == 'e' || at[-1] == 'E') && (*at == '-' || *at == '+');
        if (*at == '.') {
            for (const char *p = point; *p && used + 8 < sizeof buffer; p++) buffer[used++] = *p;
        } else if ((*at >= '0' && *at <= '9') || *at == 'e' || *at == 'E' || exponent_sign ||
                   (*at == '-' && at == r->at)) {
            buffer[used++] = *at;
        } else {
            break;
        }
    }
    buffer[used] = 0;
    char *end = NULL;
    double value = strtod(buffer, &end);
    if (used == 0 || *end != 0) return kernel_read_fail(r, "an expression");
    r->at = at;
    smg_kind kind = kernel_read_take(r, "i") ? SMG_KIND_INT : SMG_KIND_FLOAT;
    return made(r, smg_expr_const(r->k->exprs, kind, value), out_expr);
}

static smg_status read_const(kernel_reader *r, smg_expr *out_expr) {
    static const char *const words[] = {"true", "false", "inf", "nan"};
    const double values[] = {1.0, 0.0, (double)INFINITY, (double)NAN};
    for (size_t i = 0; i < SMG_COUNT_OF(words); i++)
        if (kernel_read_keyword(r, words[i]))
            return made(r, smg_expr_const(r->k->exprs, i < 2 ? SMG_KIND_BOOL : SMG_KIND_FLOAT, values[i]), out_expr);
    if (kernel_read_take(r, "-inf")) return made(r, smg_expr_const(r->k->exprs, SMG_KIND_FLOAT, -values[2]), out_expr);
    return read_number(r, out_expr);
}

/* ---- calls and labels ------------------------------------------------------------------------------ */

static smg_status read_arguments(kernel_reader *r, smg_prim prim, smg_expr *out_expr) {
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    SMG_TRY(kernel_read_sign(r, "("));
    for (int i = 0; i < smg_prim_arity(prim); i++) {
        if (i > 0) SMG_TRY(kernel_read_sign(r, ","));
        SMG_TRY(read_expr(r, &arg[i]));
    }
    SMG_TRY(kernel_read_sign(r, ")"));
    return made(r, smg_expr_make(r->k->exprs, prim, arg[0], arg[1], arg[2]), out_expr);
}

static smg_status read_call(kernel_reader *r, smg_expr *out_expr) {
    if (kernel_read_keyword(r, "load")) return read_access_leaf(r, SMG_KLEAF_LOAD, out_expr);
    if (kernel_read_keyword(r, "iota")) return read_access_leaf(r, SMG_KLEAF_IOTA, out_expr);
    if (kernel_read_keyword(r, "size")) return read_size_leaf(r, SMG_KIND_INT, out_expr);
    if (kernel_read_keyword(r, "fsize")) return read_size_leaf(r, SMG_KIND_FLOAT, out_expr);
    for (int prim = 0; prim < SMG_PRIM_COUNT; prim++)
        if (smg_prim_arity((smg_prim)prim) > 0 && kernel_read_keyword(r, smg_prim_word((smg_prim)prim)))
            return read_arguments(r, (smg_prim)prim, out_expr);
    return kernel_read_fail(r, "a primitive");
}

/* "%3:mul(...)" gives a part its label, which must be the next one; "%3" means the part again. */
static smg_status read_label(kernel_reader *r, smg_expr *out_expr) {
    int label = 0;
    SMG_TRY(kernel_read_int(r, 1, r->labels.count + 1, &label));
    if (!kernel_read_take(r, ":")) {
        if (label > r->labels.count || r->labels.items[label - 1] == SMG_EXPR_NONE)
            return kernel_read_fail(r, "the definition of a label");
        *out_expr = r->labels.items[label - 1];
        return SMG_OK;
    }
    if (label <= r->labels.count) return kernel_read_fail(r, "a new label");
    smg_expr *slot = SMG_ARRAY_PUSH(r->arena, &r->labels);
    if (!slot) return SMG_MEMORY;
    *slot = SMG_EXPR_NONE;
    SMG_TRY(read_call(r, out_expr));
    r->labels.items[label - 1] = *out_expr;
    return SMG_OK;
}

/* A word with a parenthesis behind it is a call, any other a tile or a constant. */
static bool call_ahead(const kernel_reader *r) {
    const char *at = r->at;
    while ((*at >= 'a' && *at <= 'z') || *at == '_') at++;
    return at > r->at && *at == '(';
}

static bool constant_ahead(const kernel_reader *r) {
    kernel_reader ahead = *r;
    if ((*r->at >= '0' && *r->at <= '9') || *r->at == '-') return true;
    return kernel_read_keyword(&ahead, "true") || kernel_read_keyword(&ahead, "false") ||
           kernel_read_keyword(&ahead, "inf") || kernel_read_keyword(&ahead, "nan");
}

static smg_status read_expr(kernel_reader *r, smg_expr *out_expr) {
    if (r->depth >= DEEPEST)
        return smg_fail(r->ctx, SMG_FORMAT, "kernel text, line %d: expression deeper than %d", r->line, DEEPEST);
    r->depth++;
    smg_status status;
    if (kernel_read_line_end(r))
        status = kernel_read_fail(r, "an expression");
    else if (kernel_read_take(r, "%"))
        status = read_label(r, out_expr);
    else if (call_ahead(r))
        status = read_call(r, out_expr);
    else
        status = constant_ahead(r) ? read_const(r, out_expr) : read_tile_leaf(r, out_expr);
    r->depth--;
    return status;
}

smg_status kernel_read_expr(kernel_reader *r, smg_expr *out_expr) {
    r->labels.count = 0;
    r->depth = 0;
    return read_expr(r, out_expr);
}
