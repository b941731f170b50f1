/* The rows of op.def as a table, and what follows from a row's expression alone: the element type of
 * a map's result is inferred by walking its prefix text, never from a list of operations. */
#include "op/op_private.h"
#include "smg/graph.h"

const smg_op_row smg_op_rows[SMG_OP_COUNT] = {
#define OP(id, word, class_, arity, expr, doc) [SMG_OP_##id] = {word, SMG_CLASS_##class_, arity, expr, doc},
#include "op/op.def"
#undef OP
};

bool smg_graph_operation(int index, const char **out_word, const char **out_doc) {
    if (index < 0 || index >= SMG_OP_COUNT || out_word == NULL || out_doc == NULL) return false;
    *out_word = smg_op_rows[index].word;
    *out_doc = smg_op_rows[index].doc;
    return true;
}

bool smg_op_find(const char *word, smg_op *out_op) {
    if (!word) return false;
    for (int i = 0; i < SMG_OP_COUNT; i++) {
        if (strcmp(smg_op_rows[i].word, word) != 0) continue;
        *out_op = (smg_op)i;
        return true;
    }
    return false;
}

bool smg_op_of_prim(smg_prim prim, smg_op *out_op) {
    static const char *const operands[] = {")", " a)", " a b)", " a b c)"};
    const char *word = smg_prim_word(prim);
    for (int i = 0; i < SMG_OP_COUNT; i++) {
        const smg_op_row *row = &smg_op_rows[i];
        bool same = row->class_ == SMG_CLASS_MAP && row->expression[0] == '(' &&
                    strncmp(row->expression + 1, word, strlen(word)) == 0 &&
                    strcmp(row->expression + 1 + strlen(word), operands[smg_prim_arity(prim)]) == 0;
        if (!same) continue;
        *out_op = (smg_op)i;
        return true;
    }
    return false;
}

smg_combine smg_op_combine(smg_op op) {
    for (int i = 0; op < SMG_OP_COUNT && i < SMG_COMBINE_COUNT; i++)
        if (strcmp(smg_op_rows[op].expression, smg_combine_word((smg_combine)i)) == 0) return (smg_combine)i;
    return SMG_COMBINE_ADD;
}

bool smg_op_is_input(smg_op op) {
    return op == SMG_OP_INPUT;
}

bool smg_op_is_constant(smg_op op) {
    return op == SMG_OP_CONSTANT;
}

bool smg_op_copies(smg_op op) {
    return op == SMG_OP_COPY;
}

bool smg_op_converts(smg_op op) {
    return op == SMG_OP_CAST;
}

smg_expr smg_op_expr(smg_exprs *pool, smg_op op, smg_type type, const smg_expr operand[3]) {
    static const smg_prim casts[] = {
        [SMG_KIND_FLOAT] = SMG_PRIM_TO_FLOAT,
        [SMG_KIND_INT] = SMG_PRIM_TO_INT,
        [SMG_KIND_BOOL] = SMG_PRIM_TO_BOOL,
    };
    if (op >= SMG_OP_COUNT || smg_op_rows[op].class_ != SMG_CLASS_MAP) return SMG_EXPR_NONE;
    if (smg_op_converts(op))
        return smg_expr_make(pool, casts[smg_type_kind(type)], operand[0], SMG_EXPR_NONE, SMG_EXPR_NONE);
    return smg_expr_parse(pool, smg_op_rows[op].expression, operand);
}

/* ---- inference ------------------------------------------------------------------------------ */

typedef struct infer {
    const char *at;
    const smg_type *operand;
    int count;
} infer;

/* A value's type while walking; a number fits any numeric type. */
typedef struct inferred {
    bool ok, number;
    smg_type type;
} inferred;

static inferred infer_operation(infer *walk, smg_prim prim);

static inferred infer_item(infer *walk) {
    prefix_token token = smg_prefix_next(&walk->at);
    if (token.kind == PREFIX_OPEN) return infer_operation(walk, token.prim);
    if (token.kind == PREFIX_NUMBER) return (inferred){.ok = true, .number = true};
    if (token.kind == PREFIX_OPERAND && token.operand < walk->count)
        return (inferred){.ok = true, .type = walk->operand[token.operand]};
    return (inferred){.ok = false};
}

static bool same_types(const inferred *a, const inferred *b) {
    return a->number || b->number || a->type == b->type;
}

/* What a primitive asks of its operands: logic takes bools, functions take floats, arithmetic takes
 * numbers; operands beside each other agree. */
static bool operands_fit(smg_prim prim, const inferred *arg, int arity) {
    bool logic = prim == SMG_PRIM_AND || prim == SMG_PRIM_OR || prim == SMG_PRIM_NOT;
    bool real = smg_prim_result(prim) == PRIM_RESULT_FLOAT || prim == SMG_PRIM_ISNAN;
    bool arithmetic = smg_prim_result(prim) == PRIM_RESULT_SAME && prim != SMG_PRIM_SELECT;
    bool order = prim == SMG_PRIM_LT || prim == SMG_PRIM_LE;
    int first = prim == SMG_PRIM_SELECT ? 1 : 0;
    if (first == 1 && (arg[0].number || arg[0].type != SMG_TYPE_BOOL)) return false;
    for (int i = first; i < arity; i++) {
        smg_kind kind = smg_type_kind(arg[i].type);
        if (!same_types(&arg[first], &arg[i])) return false;
        if (arg[i].number) continue;
        if (logic && kind != SMG_KIND_BOOL) return false;
        if (real && kind != SMG_KIND_FLOAT) return false;
        if ((arithmetic || order) && kind == SMG_KIND_BOOL) return false;
    }
    return true;
}

static inferred infer_operation(infer *walk, smg_prim prim) {
    inferred arg[3] = {{.ok = false}}, none = {.ok = false}, result = {.ok = true, .number = true};
    int arity = smg_prim_arity(prim);
    for (int i = 0; i < arity; i++) {
        arg[i] = infer_item(walk);
        if (!arg[i].ok) return none;
        if (!arg[i].number) result = arg[i];
    }
    if (smg_prefix_next(&walk->at).kind != PREFIX_CLOSE || !operands_fit(prim, arg, arity)) return none;
    if (smg_prim_result(prim) == PRIM_RESULT_BOOL) result = (inferred){.ok = true, .type = SMG_TYPE_BOOL};
    return result;
}

bool smg_op_infer_type(smg_op op, const smg_type *operand, int count, smg_type *out_type) {
    if (op >= SMG_OP_COUNT || smg_op_rows[op].class_ != SMG_CLASS_MAP || smg_op_rows[op].arity != count) return false;
    if (smg_op_converts(op)) {
        *out_type = operand[0];
        return true;
    }
    infer walk = {smg_op_rows[op].expression, operand, count};
    inferred result = infer_item(&walk);
    if (!result.ok || result.number) return false;
    *out_type = result.type;
    return true;
}
