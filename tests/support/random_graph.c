/* Values so far are a pool; each step picks an action and operands that suit it. Chains of dependent reductions
 * are made on purpose (x, reduce x, combine both), since they are what fusion is about. */
#include "random_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define EPSILON 1.2e-7

double random_epsilon(const maker *m) {
    return m->o->epsilon > 0 ? m->o->epsilon : EPSILON;
}

double random_max_error(const maker *m) {
    return m->o->max_error > 0 ? m->o->max_error : 2e-5;
}

/* Less than f32's number of roundings, so that what is left says whether a result is right. */
random_options random_narrow(random_options o, smg_type type) {
    o.epsilon = smg_type_epsilon(type);
    o.max_error = 0.02;
    return o;
}

int random_draw(maker *m, int limit) {
    m->state = m->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((m->state >> 33) % (uint64_t)limit);
}

int64_t random_value_of(const maker *m, extent e) {
    int64_t v = e.k;
    for (int i = 0; i < e.s; i++) v *= m->o->s;
    for (int i = 0; i < e.t; i++) v *= m->o->t;
    return v;
}

bool random_same(extent a, extent b) {
    return a.k == b.k && a.s == b.s && a.t == b.t;
}
static bool is_one(extent e) {
    return e.k == 1 && e.s == 0 && e.t == 0;
}
bool random_is_static(extent e) {
    return e.s == 0 && e.t == 0;
}

double random_magnitude(const item *i) {
    return fmax(fabs(i->low), fabs(i->high));
}

static int64_t elements(const maker *m, const item *i) {
    int64_t n = 1;
    for (int d = 0; d < i->rank; d++) n *= random_value_of(m, i->dim[d]);
    return n;
}

void random_dims_text(const item *i, char out[128]) {
    size_t at = 0;
    out[0] = '\0';
    for (int d = 0; d < i->rank; d++) {
        at += (size_t)snprintf(out + at, 128 - at, "%s%lld", d ? ", " : "", (long long)i->dim[d].k);
        for (int n = 0; n < i->dim[d].s; n++) at += (size_t)snprintf(out + at, 128 - at, "*s");
        for (int n = 0; n < i->dim[d].t; n++) at += (size_t)snprintf(out + at, 128 - at, "*t");
    }
}

bool random_tame(const maker *m, const item *i) {
    return random_magnitude(i) <= MAX_VALUE && i->error <= random_max_error(m) &&
           elements(m, i) <= m->o->max_elements && m->count < POOL;
}

void random_keep(maker *m, item i) {
    i.error += random_epsilon(m) * random_magnitude(&i);
    m->pool[m->count++] = i;
}

void random_keep_view(maker *m, item *a, item r) {
    a->used = true;
    r.used = false;
    r.view = r.moved = true;
    m->pool[m->count++] = r;
}

item *random_pick(maker *m) {
    int recent = m->count < 6 ? m->count : 6; /* prefers new ones: depth, not breadth */
    int at = random_draw(m, 3) ? m->count - 1 - random_draw(m, recent) : random_draw(m, m->count);
    return &m->pool[at];
}

static extent draw_extent(maker *m) {
    static const int64_t fixed[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 33, 64};
    if (m->o->symbolic && random_draw(m, 3) == 0) return random_draw(m, 2) ? (extent){1, 1, 0} : (extent){1, 0, 1};
    return (extent){fixed[random_draw(m, (int)SMG_COUNT_OF(fixed))], 0, 0};
}

static void add_input(maker *m, const item *like) {
    item i = {.low = -1, .high = 1, .error = random_epsilon(m) > EPSILON ? random_epsilon(m) : 0};
    char dims[128], name[16];
    if (like != NULL) {
        i.rank = like->rank;
        for (int d = 0; d < i.rank; d++) i.dim[d] = random_draw(m, 4) ? like->dim[d] : (extent){1, 0, 0};
    } else {
        i.rank = 1 + random_draw(m, RANK - 1);
        for (int d = 0; d < i.rank; d++) i.dim[d] = draw_extent(m);
    }
    if (!random_tame(m, &i)) return;
    random_dims_text(&i, dims);
    snprintf(name, sizeof(name), "in%d", m->count);
    i.v = smg_graph_input(m->g, name, "f32", dims);
    i.view = true;
    m->pool[m->count++] = i;
}

/* ---- maps --------------------------------------------------------------------------------------- */

static void unary(maker *m, item *a) {
    static const char *const word[] = {"neg", "abs", "tanh", "sigmoid", "relu", "sin", "square", "exp", "erf"};
    int op = random_draw(m, (int)SMG_COUNT_OF(word));
    item r = *a;
    r.used = r.view = r.moved = false;
    switch (op) {
    case 0:
        r.low = -a->high;
        r.high = -a->low;
        break;
    case 1:
        r.low = a->low > 0 ? a->low : 0;
        r.high = random_magnitude(a);
        break;
    case 4:
        r.low = fmax(a->low, 0);
        r.high = fmax(a->high, 0);
        break;
    case 6:
        r.low = 0;
        r.high = random_magnitude(a) * random_magnitude(a);
        r.error *= 2 * random_magnitude(a);
        break;
    case 7:
        r.low = exp(a->low);
        r.high = exp(a->high);
        r.error *= r.high;
        break;
    default:
        r.low = op == 3 ? 0 : -1;
        r.high = 1;
        r.error *= 1.2;
        break;
    }
    if (!random_tame(m, &r)) return;
    a->used = true;
    r.v = smg_graph_map(m->g, word[op], 1, &a->v);
    random_keep(m, r);
}

/* a + 1.5 when that makes it positive, then a function of positive numbers. */
static void positive(maker *m, item *a) {
    static const char *const word[] = {"sqrt", "rsqrt", "log", "recip"};
    int op = random_draw(m, (int)SMG_COUNT_OF(word));
    item r = *a;
    if (a->low < 0) return;
    r.used = r.view = r.moved = false;
    double low = a->low + 0.25, high = a->high + 0.25;
    smg_value moved[2] = {a->v, smg_graph_number(m->g, "f32", 0.25)};
    r.v = smg_graph_map(m->g, "add", 2, moved);
    switch (op) {
    case 0:
        r.low = sqrt(low);
        r.high = sqrt(high);
        r.error *= 0.5 / sqrt(low);
        break;
    case 1:
        r.low = 1 / sqrt(high);
        r.high = 1 / sqrt(low);
        r.error *= 0.5 / (low * sqrt(low));
        break;
    case 2:
        r.low = log(low);
        r.high = log(high);
        r.error /= low;
        break;
    default:
        r.low = 1 / high;
        r.high = 1 / low;
        r.error /= low * low;
        break;
    }
    a->used = true;
    r.v = smg_graph_map(m->g, word[op], 1, &r.v);
    random_keep(m, r);
}

static bool broadcast_dims(const item *a, const item *b, item *r) {
    r->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int d = 0; d < r->rank; d++) {
        int da = d - r->rank + a->rank, db = d - r->rank + b->rank;
        extent ea = da >= 0 ? a->dim[da] : (extent){1, 0, 0}, eb = db >= 0 ? b->dim[db] : (extent){1, 0, 0};
        if (!random_same(ea, eb) && !is_one(ea) && !is_one(eb)) return false;
        r->dim[d] = is_one(ea) ? eb : ea;
    }
    return true;
}

static void product_range(const item *a, const item *b, item *r) {
    double p[4] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
    r->low = fmin(fmin(p[0], p[1]), fmin(p[2], p[3]));
    r->high = fmax(fmax(p[0], p[1]), fmax(p[2], p[3]));
    r->error = a->error * random_magnitude(b) + b->error * random_magnitude(a);
}

static bool binary(maker *m, item *a, item *b) {
    static const char *const word[] = {"add", "sub", "mul", "max", "min", "div"};
    int op = random_draw(m, (int)SMG_COUNT_OF(word));
    item r = {.error = a->error + b->error};
    if (!broadcast_dims(a, b, &r)) return false;
    if (op == 5 && b->low < 0.1) op = 1;
    if (op == 0)
        r.low = a->low + b->low, r.high = a->high + b->high;
    else if (op == 1)
        r.low = a->low - b->high, r.high = a->high - b->low;
    else if (op == 2)
        product_range(a, b, &r);
    else if (op == 3)
        r.low = fmax(a->low, b->low), r.high = fmax(a->high, b->high);
    else if (op == 4)
        r.low = fmin(a->low, b->low), r.high = fmin(a->high, b->high);
    else {
        item inverse = *b;
        inverse.low = 1 / b->high;
        inverse.high = 1 / b->low;
        inverse.error = b->error / (b->low * b->low);
        product_range(a, &inverse, &r);
    }
    if (!random_tame(m, &r)) return false;
    a->used = b->used = true;
    r.v = smg_graph_map(m->g, word[op], 2, (smg_value[]){a->v, b->v});
    random_keep(m, r);
    return true;
}

static void any_binary(maker *m) {
    item *a = random_pick(m);
    for (int i = 0; i < 8; i++) {
        if (binary(m, a, random_pick(m))) return;
    }
    add_input(m, a);
    binary(m, a, &m->pool[m->count - 1]);
}

/* Predicates read indices only, so that rounding cannot turn them. */
static void masked(maker *m, item *a) {
    char dims[128];
    item r = *a;
    if (a->rank == 0 || !random_tame(m, a)) return;
    int axis = random_draw(m, a->rank);
    for (int d = 0; d < a->rank; d++) r.dim[d] = d == axis ? a->dim[d] : (extent){1, 0, 0};
    random_dims_text(&r, dims);
    smg_value index = smg_graph_iota(m->g, dims, axis);
    smg_value bound = smg_graph_number(m->g, "i32", random_draw(m, 20));
    smg_value test = smg_graph_map(m->g, random_draw(m, 2) ? "lt" : "ge", 2, (smg_value[]){index, bound});
    double other = random_draw(m, 2) ? 0 : -2;
    r = *a;
    r.used = r.view = r.moved = false;
    r.low = fmin(a->low, other);
    r.high = fmax(a->high, other);
    if (!random_tame(m, &r)) return;
    a->used = true;
    r.v = smg_graph_map(m->g, "select", 3, (smg_value[]){test, a->v, smg_graph_number(m->g, "f32", other)});
    random_keep(m, r);
}

/* ---- reductions and products ---------------------------------------------------------------------- */

void random_scale(maker *m, item *r, double factor) {
    r->v = smg_graph_map(m->g, "mul", 2, (smg_value[]){r->v, smg_graph_number(m->g, "f32", factor)});
    r->low *= factor;
    r->high *= factor;
    r->error *= factor;
}

static bool reduce(maker *m, item *a, bool keep_axis) {
    static const char *const word[] = {"sum", "reduce_max", "reduce_min", "sum"};
    if (a->rank == 0) return false;
    int op = random_draw(m, (int)SMG_COUNT_OF(word)), axis = random_draw(m, 2) ? a->rank - 1 : random_draw(m, a->rank);
    item r = *a;
    r.used = r.view = r.moved = false;
    double n = (double)random_value_of(m, a->dim[axis]), factor = 1.0 / n;
    if (op == 0 || op == 3) {
        r.error = (r.error + random_epsilon(m) * 4 * random_magnitude(a)) * n;
        if (r.error * factor > random_max_error(m)) return false;
    }
    if (keep_axis)
        r.dim[axis] = (extent){1, 0, 0};
    else {
        for (int d = axis; d + 1 < r.rank; d++) r.dim[d] = r.dim[d + 1];
        r.rank--;
    }
    if (m->count >= POOL - 2) return false;
    a->used = true;
    r.v = smg_graph_reduce(m->g, word[op], a->v, axis, keep_axis);
    if (op == 0 || op == 3) {
        r.low *= n;
        r.high *= n;
        random_scale(m, &r, factor);
    }
    random_keep(m, r);
    return true;
}

/* x, its reduction, and both together. */
static void row_chain(maker *m) {
    item *a = random_pick(m);
    int at = (int)(a - m->pool);
    if (!reduce(m, a, true)) return;
    binary(m, &m->pool[at], &m->pool[m->count - 1]);
}

/* Labels: shared leading axes, one contracted axis of equal extent, the rest free. */
static bool contract_with(maker *m, item *a, item *b, int ka, int kb, bool batch) {
    char label[3][RANK * 2 + 1] = {"", "", ""}, text[40];
    item r = {.error = 0};
    double n = (double)random_value_of(m, a->dim[ka]);
    int next = 'a' + 2, out = 0;
    for (int d = 0; d < a->rank; d++) {
        bool shared = batch && d == 0 && ka != 0 && kb != 0 && random_same(a->dim[0], b->dim[0]);
        label[0][d] = (char)(d == ka ? 'a' : shared ? 'b' : next++);
        if (shared) label[1][0] = 'b';
        if (d == ka) continue;
        label[2][out] = label[0][d];
        r.dim[out++] = a->dim[d];
    }
    for (int d = 0; d < b->rank; d++) {
        if (label[1][d] == 'b') continue;
        label[1][d] = (char)(d == kb ? 'a' : next++);
        if (d == kb) continue;
        if (out == RANK) return false;
        label[2][out] = label[1][d];
        r.dim[out++] = b->dim[d];
    }
    r.rank = out;
    product_range(a, b, &r);
    r.error += random_epsilon(m) * 4 * random_magnitude(&r);
    if (!random_tame(m, &r) || m->count >= POOL - 2 || (double)elements(m, &r) * n > 4e5) return false;
    snprintf(text, sizeof(text), "%s,%s->%s", label[0], label[1], label[2]);
    a->used = b->used = true;
    r.low *= n;
    r.high *= n;
    r.error *= n;
    r.v = smg_graph_contract(m->g, text, a->v, b->v);
    random_scale(m, &r, 1.0 / n);
    random_keep(m, r);
    return true;
}

/* An input that lies along the last `axes` axes of `a`, and one more; NULL where it would be too large. */
static item *weight(maker *m, const item *a, int axes) {
    item w = {.rank = axes + 1, .low = -1, .high = 1, .view = true};
    w.error = random_epsilon(m) > EPSILON ? random_epsilon(m) : 0;
    char dims[128], name[16];
    for (int d = 0; d < axes; d++) w.dim[d] = a->dim[a->rank - axes + d];
    w.dim[axes] = draw_extent(m);
    if (!random_tame(m, &w)) return NULL;
    random_dims_text(&w, dims);
    snprintf(name, sizeof(name), "w%d", m->count);
    w.v = smg_graph_input(m->g, name, "f32", dims);
    m->pool[m->count] = w;
    return &m->pool[m->count++];
}

static void contract(maker *m) {
    item *a = random_pick(m);
    if (a->rank == 0) return;
    for (int i = 0; i < 12; i++) {
        item *b = random_pick(m);
        if (b->rank == 0) continue;
        int ka = random_draw(m, a->rank), kb = random_draw(m, b->rank);
        if (random_same(a->dim[ka], b->dim[kb]) && contract_with(m, a, b, ka, kb, random_draw(m, 2))) return;
    }
    item *w = weight(m, a, 1);
    if (w != NULL) contract_with(m, a, w, a->rank - 1, 0, false);
}

/* A row and what is made of the whole of it, then a product over the row. */
static void row_product(maker *m) {
    row_chain(m);
    item *a = &m->pool[m->count - 1], *w = a->rank > 0 ? weight(m, a, 1) : NULL;
    if (w != NULL) contract_with(m, a, w, a->rank - 1, 0, false);
}

/* A product over the last two axes. */
static void contract_two(maker *m) {
    item *a = random_pick(m), *w = a->rank >= 2 && m->count < POOL - 3 ? weight(m, a, 2) : NULL;
    if (w == NULL) return;
    char text[40];
    item r = {.rank = a->rank - 1};
    double n = (double)random_value_of(m, w->dim[0]) * (double)random_value_of(m, w->dim[1]);
    for (int d = 0; d + 2 < a->rank; d++) r.dim[d] = a->dim[d];
    r.dim[a->rank - 2] = w->dim[2];
    product_range(a, w, &r);
    r.error += random_epsilon(m) * 4 * random_magnitude(&r);
    if (!random_tame(m, &r) || (double)elements(m, &r) * n > 4e5) return;
    snprintf(text, sizeof(text), "%.*sxy,xyz->%.*sz", a->rank - 2, "ab", a->rank - 2, "ab");
    a->used = w->used = true;
    r.low *= n;
    r.high *= n;
    r.error *= n;
    r.v = smg_graph_contract(m->g, text, a->v, w->v);
    random_scale(m, &r, 1.0 / n);
    random_keep(m, r);
}

/* ---- views and gathers ---------------------------------------------------------------------------- */

static void transpose(maker *m, item *a) {
    int perm[RANK];
    item r = *a;
    if (a->rank < 2 || !random_tame(m, a)) return;
    for (int d = 0; d < a->rank; d++) perm[d] = d;
    for (int d = a->rank - 1; d > 0; d--) {
        int other = random_draw(m, d + 1), p = perm[d];
        perm[d] = perm[other];
        perm[other] = p;
    }
    for (int d = 0; d < a->rank; d++) r.dim[d] = a->dim[perm[d]];
    a->used = r.view = r.moved = true;
    r.used = false;
    r.v = smg_graph_transpose(m->g, a->v, a->rank, perm);
    m->pool[m->count++] = r;
}

/* Merges two neighbours, or splits an even one, or adds an axis of extent 1. */
static void reshape(maker *m, item *a) {
    item r = *a;
    char dims[128];
    if (a->rank == 0 || !random_tame(m, a)) return;
    int axis = random_draw(m, a->rank), way = random_draw(m, 3);
    if (way == 0 && axis + 1 < a->rank) {
        extent x = a->dim[axis], y = a->dim[axis + 1];
        r.dim[axis] = (extent){x.k * y.k, x.s + y.s, x.t + y.t};
        for (int d = axis + 1; d + 1 < r.rank; d++) r.dim[d] = a->dim[d + 1];
        r.rank--;
    } else if (a->rank < RANK) {
        extent outer = {1, 0, 0}, inner = a->dim[axis];
        for (int k = 2; way == 1 && k <= 4; k++) {
            if (a->dim[axis].k % k == 0) outer.k = k, inner.k = a->dim[axis].k / k;
        }
        for (int d = r.rank; d > axis + 1; d--) r.dim[d] = r.dim[d - 1];
        r.dim[axis] = random_draw(m, 2) ? outer : inner;
        r.dim[axis + 1] = r.dim[axis].k == outer.k && random_same(r.dim[axis], outer) ? inner : outer;
        r.rank++;
    } else
        return;
    random_dims_text(&r, dims);
    a->used = r.view = r.moved = true;
    r.used = false;
    r.v = smg_graph_reshape(m->g, a->v, dims);
    m->pool[m->count++] = r;
}

static void slice(maker *m, item *a) {
    item r = *a;
    char begin[24], count[24];
    if (a->rank == 0 || !random_tame(m, a)) return;
    int axis = random_draw(m, a->rank);
    if (!random_is_static(a->dim[axis]) || a->dim[axis].k < 2) return;
    int64_t n = a->dim[axis].k, from = random_draw(m, (int)(n / 2)), step = 1 + random_draw(m, 2);
    r.dim[axis].k = (n - from + step - 1) / step;
    snprintf(begin, sizeof(begin), "%lld", (long long)from);
    snprintf(count, sizeof(count), "%lld", (long long)r.dim[axis].k);
    a->used = r.view = r.moved = true;
    r.used = false;
    r.v = smg_graph_slice(m->g, a->v, axis, begin, count, (int)step);
    m->pool[m->count++] = r;
}

static void gather(maker *m, item *a) {
    item r = *a, index = {.rank = 1};
    char dims[128], name[16];
    if (a->rank == 0 || !random_is_static(a->dim[0]) || a->dim[0].k < 2) return;
    index.dim[0] = r.dim[0] = draw_extent(m);
    r.used = r.view = r.moved = false;
    if (!random_tame(m, &r)) return;
    random_dims_text(&index, dims);
    snprintf(name, sizeof(name), "ids%d", m->count);
    a->used = true;
    r.v = smg_graph_gather(m->g, a->v, smg_graph_input(m->g, name, "i32", dims));
    random_keep(m, r);
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void act(maker *m) {
    switch (random_draw(m, 24)) {
    case 0:
    case 1: unary(m, random_pick(m)); break;
    case 2: positive(m, random_pick(m)); break;
    case 3:
    case 4: any_binary(m); break;
    case 5: masked(m, random_pick(m)); break;
    case 6: reduce(m, random_pick(m), random_draw(m, 2)); break;
    case 7:
    case 8:
    case 9: row_chain(m); break;
    case 10:
    case 11: contract(m); break;
    case 12: transpose(m, random_pick(m)); break;
    case 13: reshape(m, random_pick(m)); break;
    case 14: slice(m, random_pick(m)); break;
    case 15: gather(m, random_pick(m)); break;
    case 16: row_product(m); break;
    case 17: contract_two(m); break;
    default: random_view(m); break;
    }
}

static void add_outputs(maker *m) {
    int outputs = 0;
    char name[16];
    for (int i = m->count - 1; i >= 0 && outputs < 6; i--) {
        item *r = &m->pool[i];
        if (r->used && random_draw(m, 8) != 0) continue;
        if (r->view && (r->used || outputs > 0)) continue;
        snprintf(name, sizeof(name), "out%d", outputs++);
        smg_value v = r->v;
        if (r->view && random_draw(m, 2)) {
            v = smg_graph_map(m->g, "mul", 2, (smg_value[]){v, smg_graph_number(m->g, "f32", 1.5)});
        }
        smg_graph_output(m->g, name, v);
    }
}

smg_status random_graph(smg_context *ctx, const random_options *o, smg_graph **out_graph) {
    maker m = {.o = o, .state = o->seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    SMG_TRY(smg_graph_create(ctx, "random", &m.g));
    *out_graph = m.g;
    while (m.count == 0) add_input(&m, NULL);
    int inputs = 0;
    for (int i = 0; i < o->operations && m.count < POOL - 4; i++) {
        act(&m);
        inputs = 0;
        for (int p = 0; p < m.count; p++) inputs += m.pool[p].view;
        if (inputs > 11) break;
    }
    add_outputs(&m);
    if (m.o->symbolic) {
        smg_graph_set_max(m.g, "s", 512);
        if (random_draw(&m, 2)) smg_graph_set_max(m.g, "t", 200);
    }
    return smg_graph_finish(m.g);
}

void random_symbols(const smg_graph *g, const random_options *o, int64_t *out_symbols) {
    for (int i = 0; i < smg_size_symbol_count(g->sizes); i++) {
        out_symbols[i] = smg_size_symbol_name(g->sizes, i)[0] == 's' ? o->s : o->t;
    }
}
