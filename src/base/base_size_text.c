/* The text form of sizes: "2*b*s+1", "floor((s+1)/2)", "mod(a,4)", "min(a,b)", "max(a,b)". A '/' in
 * text is floor division, with or without floor(). Equal sizes have one text in all pools whose symbols have one order:
 * it does not hang on which atom a pool met first. */
#include "base/size_private.h"

#define MAX_DEPTH 64

/* ---- order ---------------------------------------------------------------------------------- */

static int compare_sizes(const smg_sizes *s, smg_size a, smg_size b);

/* Symbols in their order, then operations by what they are of. */
static int compare_atoms(const smg_sizes *s, int32_t a, int32_t b) {
    const size_atom *x = &s->atoms.items[a], *y = &s->atoms.items[b];
    if (a == b) return 0;
    if (x->is_symbol || y->is_symbol)
        return x->is_symbol && y->is_symbol ? x->symbol - y->symbol : x->is_symbol ? -1 : 1;
    if (x->op != y->op) return (int)x->op - (int)y->op;
    int order = compare_sizes(s, x->a, y->a);
    return order != 0 ? order : compare_sizes(s, x->b, y->b);
}

static void sort_atoms(const smg_sizes *s, const size_term *term, int32_t out_atom[SIZE_MAX_DEGREE]) {
    for (int k = 0; k < term->degree; k++) {
        int at = k;
        for (; at > 0 && compare_atoms(s, term->atom[k], out_atom[at - 1]) < 0; at--) out_atom[at] = out_atom[at - 1];
        out_atom[at] = term->atom[k];
    }
}

/* Graded lexicographic, as in a pool. */
static int compare_monomials(const smg_sizes *s, const size_term *x, const size_term *y) {
    int32_t a[SIZE_MAX_DEGREE], b[SIZE_MAX_DEGREE];
    int order = y->degree - x->degree;
    if (order != 0) return order;
    sort_atoms(s, x, a);
    sort_atoms(s, y, b);
    for (int k = 0; k < x->degree && order == 0; k++) order = compare_atoms(s, a[k], b[k]);
    return order;
}

/* The numbers of its terms, in their order. */
static void sort_terms(const smg_sizes *s, const size_node *node, uint8_t out_order[SIZE_MAX_TERMS]) {
    for (int i = 0; i < node->count; i++) {
        int at = i;
        for (; at > 0 && compare_monomials(s, &node->terms[i], &node->terms[out_order[at - 1]]) < 0; at--)
            out_order[at] = out_order[at - 1];
        out_order[at] = (uint8_t)i;
    }
}

static int compare_sizes(const smg_sizes *s, smg_size a, smg_size b) {
    const size_node *x = &s->nodes.items[a], *y = &s->nodes.items[b];
    uint8_t left[SIZE_MAX_TERMS], right[SIZE_MAX_TERMS];
    if (a == b) return 0;
    sort_terms(s, x, left);
    sort_terms(s, y, right);
    for (int i = 0; i < x->count && i < y->count; i++) {
        const size_term *p = &x->terms[left[i]], *q = &y->terms[right[i]];
        int order = compare_monomials(s, p, q);
        if (order != 0) return order;
        if (p->coefficient != q->coefficient) return p->coefficient < q->coefficient ? -1 : 1;
    }
    return x->count - y->count;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_parenthesised(const smg_sizes *s, smg_size a, smg_text *text) {
    const size_node *node = &s->nodes.items[a];
    bool plain = node->count == 0 ||
                 (node->count == 1 && node->terms[0].degree == 0 && node->terms[0].coefficient >= 0) ||
                 (node->count == 1 && node->terms[0].degree == 1 && node->terms[0].coefficient == 1);
    if (!plain) smg_text_add(text, "(");
    smg_size_print(s, a, text);
    if (!plain) smg_text_add(text, ")");
}

static void print_atom(const smg_sizes *s, int32_t id, smg_text *text) {
    static const char *const words[] = {"floor(", "mod(", "min(", "max("};
    const size_atom *atom = &s->atoms.items[id];
    if (atom->is_symbol) {
        smg_text_add(text, s->symbols.items[atom->symbol].name);
        return;
    }
    smg_text_add(text, words[atom->op]);
    if (atom->op == SMG_SIZE_DIV) {
        print_parenthesised(s, atom->a, text);
        smg_text_add(text, "/");
        print_parenthesised(s, atom->b, text);
    } else {
        smg_size_print(s, atom->a, text);
        smg_text_add(text, ",");
        smg_size_print(s, atom->b, text);
    }
    smg_text_add(text, ")");
}

void smg_size_print(const smg_sizes *s, smg_size a, smg_text *text) {
    if (a < 0 || a >= s->nodes.count) {
        smg_text_add(text, "?");
        return;
    }
    const size_node *node = &s->nodes.items[a];
    uint8_t order[SIZE_MAX_TERMS];
    if (node->count == 0) smg_text_add(text, "0");
    sort_terms(s, node, order);
    for (int i = 0; i < node->count; i++) {
        const size_term *term = &node->terms[order[i]];
        int32_t atom[SIZE_MAX_DEGREE];
        sort_atoms(s, term, atom);
        bool unit = term->coefficient == 1 || term->coefficient == -1;
        if (term->coefficient > 0 && i > 0) smg_text_add(text, "+");
        if (unit && term->degree > 0)
            smg_text_add(text, term->coefficient < 0 ? "-" : "");
        else
            smg_text_addf(text, "%lld%s", (long long)term->coefficient, term->degree > 0 ? "*" : "");
        for (int k = 0; k < term->degree; k++) {
            if (k > 0) smg_text_add(text, "*");
            print_atom(s, atom[k], text);
        }
    }
}

/* ---- parsing -------------------------------------------------------------------------------- */

typedef struct size_parser {
    smg_sizes *sizes;
    const char *at;
    int depth;
} size_parser;

static smg_size parse_sum(size_parser *p);

static smg_context *context_of(const size_parser *p) {
    return smg_arena_context(p->sizes->arena);
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static smg_size unexpected(size_parser *p, const char *wanted) {
    char found[24];
    size_t n = 0;
    while (n + 1 < sizeof found && p->at[n] && p->at[n] != '\n') n++;
    memcpy(found, p->at, n);
    found[n] = '\0';
    smg_fail(context_of(p), SMG_FORMAT, "a size expects %s before \"%s\"", wanted, found);
    return SMG_SIZE_NONE;
}

/* Takes the character, spaces before it included. */
static bool take(size_parser *p, char c) {
    const char *at = skip_spaces(p->at);
    if (*at != c) return false;
    p->at = at + 1;
    return true;
}

static smg_size parse_number(size_parser *p) {
    int64_t value = 0;
    for (; is_digit(*p->at); p->at++) {
        if (!smg_mul_i64(value, 10, &value) || !smg_add_i64(value, *p->at - '0', &value)) {
            smg_fail(context_of(p), SMG_FORMAT, "a number in a size does not fit 64 bits");
            return SMG_SIZE_NONE;
        }
    }
    return smg_size_const(p->sizes, value);
}

static smg_size parse_call(size_parser *p, const char *name, size_t length) {
    static const char *const words[] = {"floor", "mod", "min", "max"};
    size_t which = 0;
    while (which < 4 && (strlen(words[which]) != length || memcmp(words[which], name, length) != 0)) which++;
    if (which == 4) {
        smg_fail(context_of(p), SMG_FORMAT, "%.*s is not a function of sizes (floor, mod, min, max are)", (int)length,
                 name);
        return SMG_SIZE_NONE;
    }
    smg_size a = parse_sum(p), b = a;
    if (a >= 0 && which > 0) {
        if (!take(p, ',')) return unexpected(p, "','");
        b = parse_sum(p);
    }
    if (a < 0 || b < 0) return SMG_SIZE_NONE;
    if (!take(p, ')')) return unexpected(p, "')'");
    if (which == 1) return smg_size_mod(p->sizes, a, b);
    if (which == 2) return smg_size_min(p->sizes, a, b);
    if (which == 3) return smg_size_max(p->sizes, a, b);
    return a;
}

static smg_size parse_name(size_parser *p) {
    const char *name = p->at;
    while (is_letter(*p->at) || is_digit(*p->at)) p->at++;
    size_t length = (size_t)(p->at - name);
    if (*p->at == '(') {
        p->at++;
        return parse_call(p, name, length);
    }
    char buffer[128];
    if (length >= sizeof buffer) {
        smg_fail(context_of(p), SMG_FORMAT, "the name of a size has %zu bytes, must have 1 to 127", length);
        return SMG_SIZE_NONE;
    }
    memcpy(buffer, name, length);
    buffer[length] = '\0';
    return smg_size_symbol(p->sizes, buffer);
}

static smg_size parse_factor(size_parser *p) {
    p->at = skip_spaces(p->at);
    if (++p->depth > MAX_DEPTH) return unexpected(p, "at most 64 levels of nesting");
    smg_size result = SMG_SIZE_NONE;
    if (is_digit(*p->at)) {
        result = parse_number(p);
    } else if (is_letter(*p->at)) {
        result = parse_name(p);
    } else if (take(p, '(')) {
        result = parse_sum(p);
        if (result >= 0 && !take(p, ')')) result = unexpected(p, "')'");
    } else if (take(p, '-')) {
        result = smg_size_sub(p->sizes, smg_size_const(p->sizes, 0), parse_factor(p));
    } else {
        result = unexpected(p, "a number, a name or '('");
    }
    p->depth--;
    return result;
}

static smg_size parse_product(size_parser *p) {
    smg_size left = parse_factor(p);
    while (left >= 0) {
        if (take(p, '*'))
            left = smg_size_mul(p->sizes, left, parse_factor(p));
        else if (take(p, '/'))
            left = smg_size_div(p->sizes, left, parse_factor(p));
        else
            break;
    }
    return left;
}

static smg_size parse_sum(size_parser *p) {
    smg_size left = parse_product(p);
    while (left >= 0) {
        if (take(p, '+'))
            left = smg_size_add(p->sizes, left, parse_product(p));
        else if (take(p, '-'))
            left = smg_size_sub(p->sizes, left, parse_product(p));
        else
            break;
    }
    return left;
}

smg_status smg_size_parse(smg_sizes *s, const char **cursor, smg_size *out_size) {
    size_parser p = {.sizes = s, .at = *cursor};
    *out_size = parse_sum(&p);
    *cursor = p.at;
    if (*out_size >= 0) return SMG_OK;
    smg_status status = smg_context_status(smg_arena_context(s->arena));
    return status != SMG_OK ? status : SMG_INTERNAL;
}
