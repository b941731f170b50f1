/* What a size is worth: constants, intervals from the symbols' bounds, the value for given symbols,
 * and the table of symbols. Intervals saturate at the ends of 64 bits, values are checked. */
#include "base/size_private.h"

typedef struct interval {
    int64_t low, high;
} interval;

bool smg_size_checked_add(int64_t a, int64_t b, int64_t *out) {
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < -INT64_MAX - b)) return false;
    *out = a + b;
    return true;
}

bool smg_size_checked_mul(int64_t a, int64_t b, int64_t *out) {
    if (a == 0 || b == 0) {
        *out = 0;
        return true;
    }
    if (a == INT64_MIN || b == INT64_MIN) return false;
    int64_t x = a < 0 ? -a : a, y = b < 0 ? -b : b;
    if (x > INT64_MAX / y) return false;
    *out = a * b;
    return true;
}

int64_t smg_size_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static bool valid(const smg_sizes *s, smg_size a) {
    return s != NULL && a >= 0 && a < s->nodes.count;
}

bool smg_size_is_const(const smg_sizes *s, smg_size a, int64_t *out_value) {
    if (!valid(s, a)) return false;
    const size_node *node = &s->nodes.items[a];
    if (node->count > 1 || (node->count == 1 && node->terms[0].degree > 0)) return false;
    if (out_value) *out_value = node->count ? node->terms[0].coefficient : 0;
    return true;
}

bool smg_size_is_symbol(const smg_sizes *s, smg_size a, int *out_symbol) {
    if (a < 0 || a >= s->nodes.count || s->nodes.items[a].count != 1) return false;
    const size_term *term = s->nodes.items[a].terms;
    if (term->coefficient != 1 || term->degree != 1 || !s->atoms.items[term->atom[0]].is_symbol) return false;
    *out_symbol = s->atoms.items[term->atom[0]].symbol;
    return true;
}

bool smg_size_is_one(const smg_sizes *s, smg_size a) {
    int64_t value;
    return smg_size_is_const(s, a, &value) && value == 1;
}

/* ---- intervals ------------------------------------------------------------------------------ */

static int64_t sat_add(int64_t a, int64_t b) {
    int64_t sum;
    if (smg_size_checked_add(a, b, &sum)) return sum < -INT64_MAX ? -INT64_MAX : sum;
    return a > 0 ? INT64_MAX : -INT64_MAX;
}

static int64_t sat_mul(int64_t a, int64_t b) {
    int64_t product;
    if (smg_size_checked_mul(a, b, &product)) return product < -INT64_MAX ? -INT64_MAX : product;
    return (a < 0) == (b < 0) ? INT64_MAX : -INT64_MAX;
}

static interval of_corners(int64_t p, int64_t q, int64_t r, int64_t t) {
    interval x = {p < q ? p : q, p > q ? p : q}, y = {r < t ? r : t, r > t ? r : t};
    return (interval){x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high};
}

static interval times(interval a, interval b) {
    return of_corners(sat_mul(a.low, b.low), sat_mul(a.low, b.high), sat_mul(a.high, b.low), sat_mul(a.high, b.high));
}

/* Ends of every symbol's interval; NULL: the symbols' own bounds. */
typedef struct ends {
    const int64_t *low, *high;
} ends;

static interval bounds_of(const smg_sizes *s, smg_size a, ends e);

static interval bounds_of_atom(const smg_sizes *s, int32_t id, ends e) {
    const size_atom *atom = &s->atoms.items[id];
    if (atom->is_symbol && e.low != NULL) return (interval){e.low[atom->symbol], e.high[atom->symbol]};
    if (atom->is_symbol) return (interval){1, s->symbols.items[atom->symbol].max};
    interval a = bounds_of(s, atom->a, e), b = bounds_of(s, atom->b, e);
    interval all = {-INT64_MAX, INT64_MAX};
    switch (atom->op) {
    case SMG_SIZE_DIV:
        if (b.low < 1) return all;
        return of_corners(smg_size_floor_div(a.low, b.low), smg_size_floor_div(a.low, b.high),
                          smg_size_floor_div(a.high, b.low), smg_size_floor_div(a.high, b.high));
    case SMG_SIZE_MOD:
        if (b.low < 1) return all;
        if (a.low == a.high && b.low == b.high) {
            int64_t rest = a.low % b.low;
            if (rest < 0) rest += b.low;
            return (interval){rest, rest};
        }
        return (interval){0, a.low >= 0 && a.high < b.high - 1 ? a.high : b.high - 1};
    case SMG_SIZE_MIN: return (interval){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
    case SMG_SIZE_MAX: return (interval){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    }
    return all;
}

static interval bounds_of_terms(const smg_sizes *s, const size_term *terms, int count, ends e) {
    interval sum = {0, 0};
    for (int i = 0; i < count; i++) {
        interval product = {terms[i].coefficient, terms[i].coefficient};
        for (int k = 0; k < terms[i].degree; k++) product = times(product, bounds_of_atom(s, terms[i].atom[k], e));
        sum = (interval){sat_add(sum.low, product.low), sat_add(sum.high, product.high)};
    }
    return sum;
}

/* ---- quotients beside what they are quotients of ---- */

#define MOST_SUM 24 /* terms */

/* A size times `scale`: terms, and what lies in an interval. */
typedef struct scaled_sum {
    size_term term[MOST_SUM];
    int count;
    int64_t scale;
    interval rest;
} scaled_sum;

static bool add_term(scaled_sum *sum, const size_term *term, int64_t factor) {
    int64_t c;
    if (!smg_size_checked_mul(term->coefficient, factor, &c)) return false;
    for (int i = 0; i < sum->count; i++) {
        size_term *own = &sum->term[i];
        if (own->degree != term->degree || memcmp(own->atom, term->atom, (size_t)term->degree * sizeof *own->atom) != 0)
            continue;
        return smg_size_checked_add(own->coefficient, c, &own->coefficient);
    }
    if (sum->count == MOST_SUM) return false;
    sum->term[sum->count] = *term;
    sum->term[sum->count++].coefficient = c;
    return true;
}

/* The divisor of a term that is a number times a quotient by a number; 0: it is none. */
static int64_t divisor_of(const smg_sizes *s, const size_term *term) {
    int64_t by = 0;
    const size_atom *atom = term->degree == 1 ? &s->atoms.items[term->atom[0]] : NULL;
    bool quotient = atom != NULL && !atom->is_symbol && atom->op == SMG_SIZE_DIV && term->coefficient != 0;
    return quotient && smg_size_is_const(s, atom->b, &by) && by > 0 ? by : 0;
}

/* n * floor(x / n) is x less something in [0, n - 1]: what else hangs on x then meets it. */
static bool spread_quotient(const smg_sizes *s, scaled_sum *sum, int at, int64_t by) {
    size_term quotient = sum->term[at];
    const size_node *whole = &s->nodes.items[s->atoms.items[quotient.atom[0]].a];
    sum->term[at].coefficient = 0;
    bool fits = smg_size_checked_mul(sum->scale, by, &sum->scale);
    for (int i = 0; i < sum->count && fits; i++)
        fits = smg_size_checked_mul(sum->term[i].coefficient, by, &sum->term[i].coefficient);
    for (int i = 0; i < whole->count && fits; i++) fits = add_term(sum, &whole->terms[i], quotient.coefficient);
    int64_t less = sat_mul(quotient.coefficient, 1 - by);
    sum->rest.low = sat_add(sat_mul(sum->rest.low, by), less < 0 ? less : 0);
    sum->rest.high = sat_add(sat_mul(sum->rest.high, by), less > 0 ? less : 0);
    return fits;
}

/* With every quotient by a number spread; false: there is none beside something else, or numbers are too large. */
static bool spread(const smg_sizes *s, const size_node *node, scaled_sum *sum) {
    bool any = false;
    if (node->count < 2 || node->count > MOST_SUM) return false;
    memcpy(sum->term, node->terms, (size_t)node->count * sizeof *sum->term);
    sum->count = node->count;
    for (int i = 0; i < sum->count; i++) {
        int64_t by = divisor_of(s, &sum->term[i]);
        any = any || by > 0;
        if (by > 0 && !spread_quotient(s, sum, i, by)) return false;
    }
    return any;
}

static interval bounds_of(const smg_sizes *s, smg_size a, ends e) {
    const size_node *node = &s->nodes.items[a];
    scaled_sum sum = {.scale = 1};
    interval found = {-INT64_MAX, INT64_MAX};
    for (int way = 0; way < 2; way++) { /* as it stands, and spread */
        if (way == 1 && !spread(s, node, &sum)) break;
        interval at = bounds_of_terms(s, way == 0 ? node->terms : sum.term, way == 0 ? node->count : sum.count, e);
        int64_t low = sat_add(at.low, sum.rest.low), high = sat_add(at.high, sum.rest.high);
        if (low > -INT64_MAX) low = -smg_size_floor_div(-low, sum.scale);
        if (high < INT64_MAX) high = smg_size_floor_div(high, sum.scale);
        if (low > found.low) found.low = low;
        if (high < found.high) found.high = high;
    }
    return found;
}

void smg_size_bounds(const smg_sizes *s, smg_size a, int64_t *out_low, int64_t *out_high) {
    interval bounds = {-INT64_MAX, INT64_MAX};
    if (valid(s, a)) bounds = bounds_of(s, a, (ends){NULL, NULL});
    if (out_low) *out_low = bounds.low;
    if (out_high) *out_high = bounds.high;
}

void smg_size_between(const smg_sizes *s, smg_size a, const int64_t *low, const int64_t *high, int64_t *out_low,
                      int64_t *out_high) {
    interval bounds = {-INT64_MAX, INT64_MAX};
    if (valid(s, a)) bounds = bounds_of(s, a, (ends){low, high});
    *out_low = bounds.low;
    *out_high = bounds.high;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool eval_atom(const smg_sizes *s, int32_t id, const int64_t *values, int64_t *out_value) {
    const size_atom *atom = &s->atoms.items[id];
    if (atom->is_symbol) {
        *out_value = values[atom->symbol];
        return true;
    }
    int64_t a = 0, b = 0;
    if (!smg_size_eval(s, atom->a, values, &a) || !smg_size_eval(s, atom->b, values, &b)) return false;
    bool division = atom->op == SMG_SIZE_DIV || atom->op == SMG_SIZE_MOD;
    if (division && (b == 0 || (a == INT64_MIN && b == -1))) return false;
    switch (atom->op) {
    case SMG_SIZE_DIV: *out_value = smg_size_floor_div(a, b); break;
    case SMG_SIZE_MOD: *out_value = a - b * smg_size_floor_div(a, b); break;
    case SMG_SIZE_MIN: *out_value = a < b ? a : b; break;
    case SMG_SIZE_MAX: *out_value = a > b ? a : b; break;
    }
    return true;
}

bool smg_size_eval(const smg_sizes *s, smg_size a, const int64_t *values, int64_t *out_value) {
    if (!valid(s, a)) return false;
    const size_node *node = &s->nodes.items[a];
    int64_t sum = 0;
    for (int i = 0; i < node->count; i++) {
        const size_term *term = &node->terms[i];
        int64_t product = term->coefficient;
        for (int k = 0; k < term->degree; k++) {
            int64_t factor = 0;
            if (!eval_atom(s, term->atom[k], values, &factor)) return false;
            if (!smg_size_checked_mul(product, factor, &product)) return false;
        }
        if (!smg_size_checked_add(sum, product, &sum)) return false;
    }
    *out_value = sum;
    return true;
}

/* ---- symbols -------------------------------------------------------------------------------- */

int smg_size_symbol_count(const smg_sizes *s) {
    return s->symbols.count;
}

const char *smg_size_symbol_name(const smg_sizes *s, int symbol) {
    return symbol >= 0 && symbol < s->symbols.count ? s->symbols.items[symbol].name : "";
}

int smg_size_symbol_find(const smg_sizes *s, const char *name) {
    for (int i = 0; i < s->symbols.count; i++)
        if (strcmp(s->symbols.items[i].name, name) == 0) return i;
    return -1;
}

void smg_size_symbol_set_max(smg_sizes *s, int symbol, int64_t max) {
    if (symbol < 0 || symbol >= s->symbols.count) return;
    if (max > SMG_SIZE_UNBOUNDED) max = SMG_SIZE_UNBOUNDED;
    s->symbols.items[symbol].max = max < 1 ? 1 : max;
}

int64_t smg_size_symbol_max(const smg_sizes *s, int symbol) {
    return symbol >= 0 && symbol < s->symbols.count ? s->symbols.items[symbol].max : SMG_SIZE_UNBOUNDED;
}

/* ---- from another pool ---------------------------------------------------------------------- */

static smg_size import_atom(smg_sizes *to, const smg_sizes *from, int32_t id) {
    const size_atom *atom = &from->atoms.items[id];
    if (atom->is_symbol) {
        const size_symbol *symbol = &from->symbols.items[atom->symbol];
        bool known = smg_size_symbol_find(to, symbol->name) >= 0;
        smg_size size = smg_size_symbol(to, symbol->name);
        if (!known && size >= 0) smg_size_symbol_set_max(to, smg_size_symbol_find(to, symbol->name), symbol->max);
        return size;
    }
    smg_size a = smg_size_import(to, from, atom->a), b = smg_size_import(to, from, atom->b);
    switch (atom->op) {
    case SMG_SIZE_DIV: return smg_size_div(to, a, b);
    case SMG_SIZE_MOD: return smg_size_mod(to, a, b);
    case SMG_SIZE_MIN: return smg_size_min(to, a, b);
    case SMG_SIZE_MAX: return smg_size_max(to, a, b);
    }
    return SMG_SIZE_NONE;
}

smg_size smg_size_import(smg_sizes *to, const smg_sizes *from, smg_size a) {
    if (!valid(from, a) || !to) return SMG_SIZE_NONE;
    if (to == from) return a;
    const size_node *node = &from->nodes.items[a];
    smg_size sum = smg_size_const(to, 0);
    for (int i = 0; i < node->count; i++) {
        smg_size product = smg_size_const(to, node->terms[i].coefficient);
        for (int k = 0; k < node->terms[i].degree; k++)
            product = smg_size_mul(to, product, import_atom(to, from, node->terms[i].atom[k]));
        sum = smg_size_add(to, sum, product);
    }
    return sum;
}
