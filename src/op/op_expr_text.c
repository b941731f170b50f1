/* Expressions and text: the prefix form of the rows' meaning is read ("(div 1 (add 1 (exp (neg a))))"),
 * an infix form is written for people. A number in prefix text takes the kind of the operand beside it,
 * so that relu of integers compares with the integer 0. */
#include "op/op_private.h"

#define MAX_DEPTH 32

prefix_token smg_prefix_next(const char **cursor) {
    const char *at = *cursor;
    while (*at == ' ') at++;
    prefix_token token = {.kind = PREFIX_BAD};
    if (*at == '\0') {
        token.kind = PREFIX_END;
    } else if (*at == ')') {
        token.kind = PREFIX_CLOSE;
        at++;
    } else if (*at == '(') {
        const char *word = ++at;
        while ((*at >= 'a' && *at <= 'z') || *at == '_') at++;
        if (smg_prim_find(word, (size_t)(at - word), &token.prim)) token.kind = PREFIX_OPEN;
    } else if (*at >= 'a' && *at <= 'c') {
        token.kind = PREFIX_OPERAND;
        token.operand = *at++ - 'a';
    } else if (*at >= '0' && *at <= '9') {
        token.kind = PREFIX_NUMBER;
        double scale = 1.0;
        for (; *at >= '0' && *at <= '9'; at++) token.number = token.number * 10.0 + (*at - '0');
        for (at += *at == '.'; *at >= '0' && *at <= '9'; at++) token.number += (scale /= 10.0) * (*at - '0');
    }
    *cursor = at;
    return token;
}

typedef struct prefix_parser {
    smg_exprs *pool;
    const char *at;
    const smg_expr *operand;
    int depth;
} prefix_parser;

static smg_expr parse_operation(prefix_parser *p, smg_prim prim);

/* Sets *out_literal for a number, which the caller makes once it knows the kind. */
static smg_expr parse_item(prefix_parser *p, prefix_token token, bool *out_literal) {
    *out_literal = token.kind == PREFIX_NUMBER;
    if (token.kind == PREFIX_OPEN) return parse_operation(p, token.prim);
    if (token.kind == PREFIX_OPERAND) return p->operand[token.operand];
    return SMG_EXPR_NONE;
}

static smg_expr parse_operation(prefix_parser *p, smg_prim prim) {
    smg_expr arg[3] = {SMG_EXPR_NONE, SMG_EXPR_NONE, SMG_EXPR_NONE};
    bool literal[3] = {false, false, false};
    double number[3] = {0.0, 0.0, 0.0};
    smg_kind kind = SMG_KIND_FLOAT;
    int arity = smg_prim_arity(prim);
    if (arity == 0 || ++p->depth > MAX_DEPTH) return SMG_EXPR_NONE;
    for (int i = 0; i < arity; i++) {
        prefix_token token = smg_prefix_next(&p->at);
        arg[i] = parse_item(p, token, &literal[i]);
        number[i] = token.number;
        if (!literal[i] && arg[i] == SMG_EXPR_NONE) return SMG_EXPR_NONE;
        if (!literal[i]) kind = smg_expr_get(p->pool, arg[i])->kind;
    }
    for (int i = 0; i < arity; i++)
        if (literal[i]) arg[i] = smg_expr_const(p->pool, kind, number[i]);
    if (smg_prefix_next(&p->at).kind != PREFIX_CLOSE) return SMG_EXPR_NONE;
    p->depth--;
    return smg_expr_make(p->pool, prim, arg[0], arg[1], arg[2]);
}

smg_expr smg_expr_parse(smg_exprs *pool, const char *prefix, const smg_expr operand[3]) {
    if (!pool || !prefix) return SMG_EXPR_NONE;
    for (int i = 0; i < 3; i++)
        if (operand[i] >= smg_expr_count(pool)) return SMG_EXPR_NONE;
    prefix_parser p = {.pool = pool, .at = prefix, .operand = operand};
    prefix_token token = smg_prefix_next(&p.at);
    bool literal;
    smg_expr result = parse_item(&p, token, &literal);
    if (literal) result = smg_expr_const(pool, SMG_KIND_FLOAT, token.number);
    return smg_prefix_next(&p.at).kind == PREFIX_END ? result : SMG_EXPR_NONE;
}

/* ---- printing ------------------------------------------------------------------------------- */

typedef struct expr_printer {
    const smg_exprs *pool;
    smg_text *text;
    void (*leaf_name)(void *user, int leaf, smg_text *text);
    void *user;
} expr_printer;

static const char *infix_sign(smg_prim prim, int *out_level) {
    static const struct {
        smg_prim prim;
        const char *sign;
        int level;
    } signs[] = {
        {SMG_PRIM_OR, " || ", 1}, {SMG_PRIM_AND, " && ", 2}, {SMG_PRIM_LT, " < ", 3},
        {SMG_PRIM_LE, " <= ", 3}, {SMG_PRIM_EQ, " == ", 3},  {SMG_PRIM_ADD, " + ", 4},
        {SMG_PRIM_SUB, " - ", 4}, {SMG_PRIM_MUL, " * ", 5},  {SMG_PRIM_DIV, " / ", 5},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(signs); i++) {
        if (signs[i].prim != prim) continue;
        *out_level = signs[i].level;
        return signs[i].sign;
    }
    return NULL;
}

static void print_constant(smg_text *text, const smg_expr_node *n) {
    if (n->kind == SMG_KIND_BOOL)
        smg_text_add(text, n->value < 0.0 || n->value > 0.0 ? "true" : "false");
    else
        smg_text_add_f64(text, n->value);
}

static void print_expr(const expr_printer *p, smg_expr expr, int above) {
    const smg_expr_node *n = smg_expr_get(p->pool, expr);
    if (!n) {
        smg_text_add(p->text, "?");
        return;
    }
    int level = 6;
    const char *sign = infix_sign(n->prim, &level);
    if (n->prim == SMG_PRIM_CONST) {
        print_constant(p->text, n);
    } else if (n->prim == SMG_PRIM_LEAF) {
        p->leaf_name(p->user, n->leaf, p->text);
    } else if (sign) {
        if (level <= above) smg_text_add(p->text, "(");
        print_expr(p, n->arg[0], level - 1);
        smg_text_add(p->text, sign);
        print_expr(p, n->arg[1], level);
        if (level <= above) smg_text_add(p->text, ")");
    } else if (n->prim == SMG_PRIM_NEG) {
        smg_text_add(p->text, "-");
        print_expr(p, n->arg[0], 5);
    } else {
        smg_text_addf(p->text, "%s(", smg_prim_word(n->prim));
        for (int i = 0; i < smg_prim_arity(n->prim); i++) {
            if (i > 0) smg_text_add(p->text, ", ");
            print_expr(p, n->arg[i], 0);
        }
        smg_text_add(p->text, ")");
    }
}

void smg_expr_print(const smg_exprs *pool, smg_expr expr, smg_text *text,
                    void (*leaf_name)(void *user, int leaf, smg_text *text), void *user) {
    expr_printer p = {pool, text, leaf_name, user};
    print_expr(&p, expr, 0);
}
