/* Arithmetic of sizes. A size is a polynomial whose terms are kept sorted and merged in a scratch
 * array and then looked up in an open-addressing table, so that equal polynomials share an id. What a
 * polynomial cannot say (floor division, remainder, min, max) becomes an atom, after everything that
 * divides evenly has been taken out of it. */
#include "base/size_private.h"

static smg_size fail(smg_sizes *s, const char *what) {
    if (!s->quiet) smg_fail(smg_arena_context(s->arena), SMG_INVALID, "%s", what);
    return SMG_SIZE_NONE;
}

smg_status smg_sizes_create(smg_arena *arena, smg_sizes **out_sizes) {
    *out_sizes = NULL;
    smg_sizes *s = SMG_ARENA_NEW(arena, smg_sizes);
    if (!s) return SMG_MEMORY;
    s->arena = arena;
    s->table_size = 64;
    s->table = SMG_ARENA_ARRAY(arena, int32_t, (size_t)s->table_size);
    if (!s->table) return SMG_MEMORY;
    *out_sizes = s;
    return smg_size_const(s, 0) == SMG_SIZE_ZERO ? SMG_OK : SMG_MEMORY;
}

bool smg_sizes_set_quiet(smg_sizes *s, bool quiet) {
    bool before = s->quiet;
    s->quiet = quiet;
    return before;
}

/* ---- the sum under construction ------------------------------------------------------------- */

/* Graded lexicographic: higher degree first, then more of the lower atoms. */
static int compare_monomials(int degree_a, const int32_t *a, int degree_b, const int32_t *b) {
    if (degree_a != degree_b) return degree_a > degree_b ? -1 : 1;
    for (int i = 0; i < degree_a; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

void smg_size_begin(smg_sizes *s) {
    s->scratch.count = 0;
}

bool smg_size_put(smg_sizes *s, int64_t coefficient, int degree, const int32_t *atoms) {
    int at = 0;
    for (; at < s->scratch.count; at++) {
        size_term *term = &s->scratch.items[at];
        int order = compare_monomials(degree, atoms, term->degree, term->atom);
        if (order == 0) {
            if (smg_size_checked_add(term->coefficient, coefficient, &term->coefficient)) return true;
            fail(s, "a size does not fit 64 bits");
            return false;
        }
        if (order < 0) break;
    }
    if (s->scratch.count >= SIZE_MAX_TERMS) {
        fail(s, "a size expression has more than 256 terms");
        return false;
    }
    size_term *added = SMG_ARRAY_PUSH(s->arena, &s->scratch);
    if (!added) return false;
    size_term *items = s->scratch.items;
    for (int i = s->scratch.count - 1; i > at; i--) items[i] = items[i - 1];
    items[at] = (size_term){.coefficient = coefficient, .degree = degree};
    if (degree > 0) memcpy(items[at].atom, atoms, (size_t)degree * sizeof *atoms);
    return true;
}

static bool put_all(smg_sizes *s, smg_size a, int64_t factor) {
    const size_node *node = &s->nodes.items[a];
    for (int i = 0; i < node->count; i++) {
        const size_term *t = &node->terms[i];
        int64_t c;
        if (!smg_size_checked_mul(t->coefficient, factor, &c)) {
            fail(s, "a size does not fit 64 bits");
            return false;
        }
        if (!smg_size_put(s, c, t->degree, t->atom)) return false;
    }
    return true;
}

static uint64_t hash_terms(const size_term *terms, int count) {
    uint64_t hash = SMG_HASH_SEED;
    for (int i = 0; i < count; i++) {
        hash = smg_hash_u64(hash, (uint64_t)terms[i].coefficient);
        for (int k = 0; k < terms[i].degree; k++) hash = smg_hash_u64(hash, (uint64_t)terms[i].atom[k]);
    }
    return hash;
}

static bool same_terms(const size_node *node, const size_term *terms, int count) {
    if (node->count != count) return false;
    for (int i = 0; i < count; i++) {
        const size_term *a = &node->terms[i], *b = &terms[i];
        if (a->coefficient != b->coefficient) return false;
        if (compare_monomials(a->degree, a->atom, b->degree, b->atom) != 0) return false;
    }
    return true;
}

static bool grow_table(smg_sizes *s) {
    int size = s->table_size * 2;
    int32_t *table = SMG_ARENA_ARRAY(s->arena, int32_t, (size_t)size);
    if (!table) return false;
    for (int i = 0; i < s->nodes.count; i++) {
        uint64_t slot = s->nodes.items[i].hash & (uint64_t)(size - 1);
        while (table[slot]) slot = (slot + 1) & (uint64_t)(size - 1);
        table[slot] = i + 1;
    }
    s->table = table;
    s->table_size = size;
    return true;
}

smg_size smg_size_intern(smg_sizes *s) {
    int count = 0;
    for (int i = 0; i < s->scratch.count; i++)
        if (s->scratch.items[i].coefficient != 0) s->scratch.items[count++] = s->scratch.items[i];
    s->scratch.count = count;
    if (s->nodes.count * 2 >= s->table_size && !grow_table(s)) return SMG_SIZE_NONE;
    uint64_t hash = hash_terms(s->scratch.items, count), mask = (uint64_t)(s->table_size - 1);
    uint64_t slot = hash & mask;
    for (; s->table[slot]; slot = (slot + 1) & mask) {
        const size_node *node = &s->nodes.items[s->table[slot] - 1];
        if (node->hash == hash && same_terms(node, s->scratch.items, count)) return s->table[slot] - 1;
    }
    size_term *terms = SMG_ARENA_ARRAY(s->arena, size_term, (size_t)(count > 0 ? count : 1));
    size_node *node = terms ? SMG_ARRAY_PUSH(s->arena, &s->nodes) : NULL;
    if (!node) return SMG_SIZE_NONE;
    if (count > 0) memcpy(terms, s->scratch.items, (size_t)count * sizeof *terms);
    *node = (size_node){.hash = hash, .count = count, .terms = terms};
    s->table[slot] = s->nodes.count;
    return s->nodes.count - 1;
}

static bool valid(const smg_sizes *s, smg_size a) {
    return s != NULL && a >= 0 && a < s->nodes.count;
}

static smg_size of_atom(smg_sizes *s, int32_t atom) {
    smg_size_begin(s);
    return smg_size_put(s, 1, 1, &atom) ? smg_size_intern(s) : SMG_SIZE_NONE;
}

static smg_size of_operation(smg_sizes *s, smg_size_op op, smg_size a, smg_size b) {
    for (int i = 0; i < s->atoms.count; i++) {
        const size_atom *atom = &s->atoms.items[i];
        if (!atom->is_symbol && atom->op == op && atom->a == a && atom->b == b) return of_atom(s, i);
    }
    size_atom *atom = SMG_ARRAY_PUSH(s->arena, &s->atoms);
    if (!atom) return SMG_SIZE_NONE;
    *atom = (size_atom){.op = op, .a = a, .b = b};
    return of_atom(s, s->atoms.count - 1);
}

/* ---- makers --------------------------------------------------------------------------------- */

smg_size smg_size_const(smg_sizes *s, int64_t value) {
    if (!s) return SMG_SIZE_NONE;
    bool small = value > 0 && value < SMALL_CONSTANTS;
    if (small && s->small[value] != SMG_SIZE_ZERO) return s->small[value];
    smg_size_begin(s);
    smg_size made = smg_size_put(s, value, 0, NULL) ? smg_size_intern(s) : SMG_SIZE_NONE;
    if (small && made >= 0) s->small[value] = made;
    return made;
}

smg_size smg_size_symbol(smg_sizes *s, const char *name) {
    if (!s || !name || !name[0]) return s ? fail(s, "a symbolic size needs a name") : SMG_SIZE_NONE;
    for (int i = 0; i < s->atoms.count; i++) {
        const size_atom *atom = &s->atoms.items[i];
        if (atom->is_symbol && strcmp(s->symbols.items[atom->symbol].name, name) == 0) return of_atom(s, i);
    }
    for (int i = 0; i < s->definitions.count; i++)
        if (strcmp(s->definitions.items[i].name, name) == 0) return s->definitions.items[i].value;
    char *copy = smg_arena_string(s->arena, name);
    size_symbol *symbol = copy ? SMG_ARRAY_PUSH(s->arena, &s->symbols) : NULL;
    size_atom *atom = symbol ? SMG_ARRAY_PUSH(s->arena, &s->atoms) : NULL;
    if (!atom) return SMG_SIZE_NONE;
    *symbol = (size_symbol){.name = copy, .max = SMG_SIZE_UNBOUNDED};
    *atom = (size_atom){.is_symbol = true, .symbol = s->symbols.count - 1};
    return of_atom(s, s->atoms.count - 1);
}

smg_status smg_size_define(smg_sizes *s, const char *name, smg_size value) {
    if (!valid(s, value)) return smg_context_status(smg_arena_context(s->arena));
    size_definition *row = SMG_ARRAY_PUSH(s->arena, &s->definitions);
    const char *copy = smg_arena_string(s->arena, name);
    if (!row || !copy) return SMG_MEMORY;
    *row = (size_definition){copy, value};
    return SMG_OK;
}

static smg_size add_scaled(smg_sizes *s, smg_size a, smg_size b, int64_t factor) {
    if (!valid(s, a) || !valid(s, b)) return SMG_SIZE_NONE;
    smg_size_begin(s);
    if (!put_all(s, a, 1) || !put_all(s, b, factor)) return SMG_SIZE_NONE;
    return smg_size_intern(s);
}

smg_size smg_size_add(smg_sizes *s, smg_size a, smg_size b) {
    return add_scaled(s, a, b, 1);
}

smg_size smg_size_sub(smg_sizes *s, smg_size a, smg_size b) {
    return add_scaled(s, a, b, -1);
}

static bool put_product(smg_sizes *s, const size_term *a, const size_term *b) {
    int64_t c;
    if (!smg_size_checked_mul(a->coefficient, b->coefficient, &c)) {
        fail(s, "a size does not fit 64 bits");
        return false;
    }
    if (a->degree + b->degree > SIZE_MAX_DEGREE) {
        fail(s, "a size expression multiplies more than 12 symbols");
        return false;
    }
    int32_t atoms[SIZE_MAX_DEGREE];
    int degree = 0, i = 0, k = 0;
    while (i < a->degree || k < b->degree) {
        bool from_a = k >= b->degree || (i < a->degree && a->atom[i] <= b->atom[k]);
        atoms[degree++] = from_a ? a->atom[i++] : b->atom[k++];
    }
    return smg_size_put(s, c, degree, atoms);
}

smg_size smg_size_mul(smg_sizes *s, smg_size a, smg_size b) {
    if (!valid(s, a) || !valid(s, b)) return SMG_SIZE_NONE;
    if (smg_size_is_one(s, a)) return b; /* as strides begin */
    size_node x = s->nodes.items[a], y = s->nodes.items[b];
    smg_size_begin(s);
    for (int i = 0; i < x.count; i++)
        for (int k = 0; k < y.count; k++)
            if (!put_product(s, &x.terms[i], &y.terms[k])) return SMG_SIZE_NONE;
    return smg_size_intern(s);
}

/* ---- division ------------------------------------------------------------------------------- */

/* true when the atoms of b are among those of a; the rest goes to out. */
static bool divide_monomial(const size_term *a, const size_term *b, size_term *out) {
    int k = 0;
    *out = (size_term){.coefficient = a->coefficient};
    for (int i = 0; i < a->degree; i++) {
        if (k < b->degree && a->atom[i] == b->atom[k])
            k++;
        else
            out->atom[out->degree++] = a->atom[i];
    }
    return k == b->degree;
}

/* a = b * quotient + rest, with as much in the quotient as b's one term divides. */
static bool split(smg_sizes *s, smg_size a, smg_size b, smg_size *out_quotient, smg_size *out_rest) {
    size_node x = s->nodes.items[a], y = s->nodes.items[b];
    *out_quotient = smg_size_const(s, 0);
    *out_rest = a;
    if (*out_quotient < 0) return false;
    if (y.count != 1) return true;
    smg_size_begin(s);
    for (int i = 0; i < x.count; i++) {
        size_term q;
        if (!divide_monomial(&x.terms[i], &y.terms[0], &q)) continue;
        int64_t c = smg_size_floor_div(q.coefficient, y.terms[0].coefficient);
        if (!smg_size_put(s, c, q.degree, q.atom)) return false;
    }
    *out_quotient = smg_size_intern(s);
    *out_rest = smg_size_sub(s, a, smg_size_mul(s, b, *out_quotient));
    return *out_rest >= 0;
}

/* floor(rest / b) where the bounds decide it: it is the same at all their corners. */
static bool decided(smg_sizes *s, smg_size rest, smg_size b, int64_t *out_floor) {
    int64_t low, high, b_low, b_high;
    smg_size_bounds(s, rest, &low, &high);
    smg_size_bounds(s, b, &b_low, &b_high);
    if (b_low < 1 || low == -INT64_MAX || high == INT64_MAX) return false; /* these stand for all that is beyond */
    int64_t first = smg_size_floor_div(low, b_low);
    *out_floor = first;
    return smg_size_floor_div(low, b_high) == first && smg_size_floor_div(high, b_low) == first &&
           smg_size_floor_div(high, b_high) == first;
}

static bool nonzero_divisor(smg_sizes *s, smg_size b) {
    int64_t value;
    if (!smg_size_is_const(s, b, &value) || value > 0) return true;
    fail(s, "a size is divided by a number that is not positive");
    return false;
}

/* floor((floor(p/c) + k) / b) is floor((p + k*c) / (b*c)) for whole c, b > 0: one division, so that
 * strides after strides have one form. NONE when `a` has no such term. */
static smg_size nested_division(smg_sizes *s, smg_size a, smg_size b) {
    int64_t outer, inner, product;
    if (!smg_size_is_const(s, b, &outer)) return SMG_SIZE_NONE;
    size_node x = s->nodes.items[a];
    for (int i = 0; i < x.count; i++) {
        if (x.terms[i].coefficient != 1 || x.terms[i].degree != 1) continue;
        int32_t at = x.terms[i].atom[0];
        size_atom atom = s->atoms.items[at];
        if (atom.is_symbol || atom.op != SMG_SIZE_DIV || !smg_size_is_const(s, atom.b, &inner) ||
            !smg_size_checked_mul(outer, inner, &product))
            continue;
        smg_size rest = smg_size_sub(s, a, of_atom(s, at));
        smg_size whole = smg_size_add(s, atom.a, smg_size_mul(s, rest, atom.b));
        return smg_size_div(s, whole, smg_size_const(s, product));
    }
    return SMG_SIZE_NONE;
}

/* floor((c*x + k) / n) with more than half of n as c is x - floor(((n - c)*x - k + n - 1) / n): what is rounded up to a
 * multiple has one form, however a file says it. NONE when the leading term is no such. */
static smg_size turned_division(smg_sizes *s, smg_size a, smg_size b) {
    int64_t number;
    if (!smg_size_is_const(s, b, &number) || s->nodes.items[a].count == 0) return SMG_SIZE_NONE;
    size_term lead = s->nodes.items[a].terms[0];
    if (lead.degree == 0 || lead.coefficient <= number / 2 || lead.coefficient >= number) return SMG_SIZE_NONE;
    smg_size_begin(s);
    if (!smg_size_put(s, 1, lead.degree, lead.atom)) return SMG_SIZE_NONE;
    smg_size whole = smg_size_intern(s), most = smg_size_sub(s, b, smg_size_const(s, 1));
    smg_size other = smg_size_sub(s, smg_size_add(s, smg_size_mul(s, b, whole), most), a);
    return smg_size_sub(s, whole, smg_size_div(s, other, b));
}

smg_size smg_size_div(smg_sizes *s, smg_size a, smg_size b) {
    smg_size quotient, rest;
    if (!valid(s, a) || !valid(s, b) || !nonzero_divisor(s, b)) return SMG_SIZE_NONE;
    if (smg_size_divide_exact(s, a, b, &quotient)) return quotient;
    if (!split(s, a, b, &quotient, &rest)) return SMG_SIZE_NONE;
    int64_t floor_of_rest;
    if (decided(s, rest, b, &floor_of_rest)) return smg_size_add(s, quotient, smg_size_const(s, floor_of_rest));
    smg_size once = nested_division(s, rest, b);
    if (once < 0) once = turned_division(s, rest, b);
    if (once < 0) once = of_operation(s, SMG_SIZE_DIV, rest, b);
    return smg_size_add(s, quotient, once);
}

smg_size smg_size_ceil_div(smg_sizes *s, smg_size a, smg_size b) {
    smg_size last = smg_size_sub(s, smg_size_add(s, a, b), smg_size_const(s, 1));
    return smg_size_div(s, last, b);
}

smg_size smg_size_mod(smg_sizes *s, smg_size a, smg_size b) {
    smg_size quotient, rest;
    if (!valid(s, a) || !valid(s, b) || !nonzero_divisor(s, b)) return SMG_SIZE_NONE;
    if (smg_size_divide_exact(s, a, b, &quotient)) return smg_size_const(s, 0);
    if (!split(s, a, b, &quotient, &rest)) return SMG_SIZE_NONE;
    int64_t floor_of_rest;
    if (decided(s, rest, b, &floor_of_rest))
        return smg_size_sub(s, rest, smg_size_mul(s, b, smg_size_const(s, floor_of_rest)));
    if (!smg_size_is_const(s, b, NULL)) return of_operation(s, SMG_SIZE_MOD, rest, b);
    /* One form for what is rounded up or down by a remainder or by a quotient: sums of these divide evenly. */
    return smg_size_sub(s, rest, smg_size_mul(s, b, smg_size_div(s, rest, b)));
}

/* Leading terms first, as with pencil and paper; the order of monomials makes it end. */
static bool divide_long(smg_sizes *s, smg_size a, smg_size b, smg_size *out_quotient) {
    size_term lead = s->nodes.items[b].terms[0];
    smg_size rest = a, quotient = smg_size_const(s, 0);
    for (int step = 0; step < SIZE_MAX_TERMS && rest >= 0 && quotient >= 0; step++) {
        if (s->nodes.items[rest].count == 0) {
            *out_quotient = quotient;
            return true;
        }
        size_term q;
        if (!divide_monomial(&s->nodes.items[rest].terms[0], &lead, &q)) return false;
        if (q.coefficient % lead.coefficient != 0) return false;
        smg_size_begin(s);
        if (!smg_size_put(s, q.coefficient / lead.coefficient, q.degree, q.atom)) return false;
        smg_size term = smg_size_intern(s);
        quotient = smg_size_add(s, quotient, term);
        rest = smg_size_sub(s, rest, smg_size_mul(s, term, b));
    }
    return false;
}

bool smg_size_divide_exact(smg_sizes *s, smg_size a, smg_size b, smg_size *out_quotient) {
    if (!valid(s, a) || !valid(s, b)) return false;
    int64_t low, high;
    smg_size_bounds(s, b, &low, &high);
    if (low <= 0 && high >= 0) return false;
    bool before = s->quiet;
    s->quiet = true;
    bool divides = divide_long(s, a, b, out_quotient);
    s->quiet = before;
    return divides;
}

/* ---- solving -------------------------------------------------------------------------------- */

static bool mentions(const smg_sizes *s, smg_size a, int symbol) {
    const size_node *node = &s->nodes.items[a];
    for (int i = 0; i < node->count; i++)
        for (int k = 0; k < node->terms[i].degree; k++) {
            const size_atom *atom = &s->atoms.items[node->terms[i].atom[k]];
            if (atom->is_symbol ? atom->symbol == symbol : mentions(s, atom->a, symbol) || mentions(s, atom->b, symbol))
                return true;
        }
    return false;
}

bool smg_size_solve(smg_sizes *s, smg_size a, int symbol, smg_size *out_value) {
    if (!valid(s, a) || symbol < 0 || symbol >= s->symbols.count) return false;
    int64_t coefficient = 0;
    smg_size own = smg_size_symbol(s, s->symbols.items[symbol].name);
    if (own < 0) return false;
    int32_t atom = s->nodes.items[own].terms[0].atom[0];
    const size_node *node = &s->nodes.items[a];
    for (int i = 0; i < node->count; i++)
        if (node->terms[i].degree == 1 && node->terms[i].atom[0] == atom) coefficient = node->terms[i].coefficient;
    if (coefficient == 0) return false;
    bool before = s->quiet;
    s->quiet = true;
    smg_size rest = smg_size_sub(s, smg_size_mul(s, own, smg_size_const(s, coefficient)), a);
    s->quiet = before;
    /* divide_long wants a positive divisor */
    if (rest >= 0 && coefficient < 0) rest = smg_size_sub(s, SMG_SIZE_ZERO, rest);
    if (rest < 0 || mentions(s, rest, symbol)) return false;
    smg_size by = smg_size_const(s, coefficient < 0 ? -coefficient : coefficient);
    return smg_size_divide_exact(s, rest, by, out_value);
}

static void take_period(const smg_sizes *s, smg_size a, int symbol, int64_t *io_period) {
    const size_node *node = &s->nodes.items[a];
    for (int i = 0; i < node->count; i++)
        for (int k = 0; k < node->terms[i].degree; k++) {
            const size_atom *atom = &s->atoms.items[node->terms[i].atom[k]];
            int64_t by = 1;
            if (atom->is_symbol) continue;
            bool divides = atom->op == SMG_SIZE_DIV || atom->op == SMG_SIZE_MOD;
            if (!divides || !mentions(s, atom->a, symbol) || !smg_size_is_const(s, atom->b, &by)) by = 1;
            by /= smg_greatest_divisor(*io_period, by);
            if (by <= SMG_SIZE_UNBOUNDED / *io_period) *io_period *= by;
            take_period(s, atom->a, symbol, io_period);
            take_period(s, atom->b, symbol, io_period);
        }
}

int64_t smg_size_period(const smg_sizes *s, smg_size a, int symbol) {
    int64_t period = 1;
    if (valid(s, a)) take_period(s, a, symbol, &period);
    return period;
}

/* ---- min and max ---------------------------------------------------------------------------- */

static smg_size extreme(smg_sizes *s, smg_size a, smg_size b, smg_size_op op) {
    if (!valid(s, a) || !valid(s, b)) return SMG_SIZE_NONE;
    smg_size difference = smg_size_sub(s, a, b);
    if (difference < 0) return SMG_SIZE_NONE;
    int64_t low, high;
    smg_size_bounds(s, difference, &low, &high);
    if (low >= 0) return op == SMG_SIZE_MAX ? a : b;
    if (high <= 0) return op == SMG_SIZE_MAX ? b : a;
    return a < b ? of_operation(s, op, a, b) : of_operation(s, op, b, a);
}

smg_size smg_size_min(smg_sizes *s, smg_size a, smg_size b) {
    return extreme(s, a, b, SMG_SIZE_MIN);
}

smg_size smg_size_max(smg_sizes *s, smg_size a, smg_size b) {
    return extreme(s, a, b, SMG_SIZE_MAX);
}
