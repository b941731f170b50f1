/* Repetitions: nodes of the order that are equal bodies, one behind the other, each of which begins with what the one
 * before has made. They are found by structure: the same operations on the same shapes, read the same way. Whatever
 * else a body reads is the same for all, or constants of its own, which then lie in memory one behind the other. A
 * repetition is a segment of any length, priced like all others. */
#include "plan/plan_internal.h"

#define LEAST_BODIES 3  /* fewer are written out in place */
#define MOST_ROLES 24   /* values that a body reads */
#define STACK_BYTES 256 /* buffers may begin at multiples of so many on every device */

/* What a value that the first body reads is to the others. */
typedef struct role {
    smg_node_id first; /* source in the first body */
    enum { SAME, CARRIED, OWN } what;
    smg_node_id *each; /* OWN: by body */
} role;

typedef struct finder {
    const planner *p;
    smg_arena *arena;
    int from, length, most; /* most: bodies that there is room for */
    int made;               /* number in the body of what it makes for the next one; -1: not known yet */
    role roles[MOST_ROLES];
    int role_count;
} finder;

static smg_node_id node_of(const finder *f, int body, int i) {
    return f->p->order[f->from + body * f->length + i];
}

/* Its number in that body; -1: it is none of its nodes. */
static int number_in(const finder *f, int body, smg_node_id id) {
    int at = f->p->place[id] - f->from - body * f->length;
    bool inside = f->p->place[id] >= 0 && !f->p->inlined[id] && f->p->prepared[id] == f->p->preparing;
    return inside && at >= 0 && at < f->length ? at : -1;
}

static bool is_constant(const planner *p, smg_node_id id) {
    return smg_op_is_constant(smg_graph_node(p->g, id)->op) || p->prepared[id];
}

static bool are_alike(const planner *p, smg_node_id a, smg_node_id b) {
    const smg_node *x = smg_graph_node(p->g, a), *y = smg_graph_node(p->g, b);
    return x->type == y->type && smg_graph_storage(p->g, a) == smg_graph_storage(p->g, b) && x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(smg_size)) == 0 &&
           memcmp(x->block, y->block, sizeof x->block) == 0;
}

/* Elements from one constant to the next where they lie one behind the other; 0: its size is not known. */
static int64_t stride_of(const planner *p, smg_node_id id) {
    int64_t elements, bytes = smg_type_device_bytes(smg_graph_storage(p->g, id));
    if (!smg_size_is_const(p->g->sizes, smg_node_elements(p->g, id), &elements)) return 0;
    return (elements * bytes + STACK_BYTES - 1) / STACK_BYTES * STACK_BYTES / bytes;
}

static role *find_role(finder *f, smg_node_id first) {
    for (int i = 0; i < f->role_count; i++)
        if (f->roles[i].first == first) return &f->roles[i];
    return NULL;
}

/* What body `body` reads where the first one reads `first`, from outside of it. */
static bool take_role(finder *f, int body, smg_node_id first, smg_node_id other) {
    int made = number_in(f, body - 1, other);
    role r = {.first = first, .what = made >= 0 ? CARRIED : other == first ? SAME : OWN};
    role *known = find_role(f, first);
    if (r.what == CARRIED) {
        if ((f->made >= 0 && f->made != made) || !are_alike(f->p, first, other)) return false;
        f->made = made;
    }
    if (r.what == OWN && (!is_constant(f->p, first) || !is_constant(f->p, other) || !are_alike(f->p, first, other)))
        return false;
    if (known == NULL) {
        if (f->role_count == MOST_ROLES) return false;
        known = &f->roles[f->role_count++];
        *known = r;
        if (r.what == OWN) known->each = SMG_ARENA_ARRAY(f->arena, smg_node_id, (size_t)f->most);
        if (r.what == OWN && known->each == NULL) return false;
        for (int b = 0; r.what == OWN && b < f->most; b++) known->each[b] = b == 0 ? first : -1;
    }
    if (known->what != r.what) return false;
    if (r.what != OWN) return true;
    bool same = known->each[body] < 0 || known->each[body] == other;
    known->each[body] = other;
    return same;
}

/* The same views of what they read? */
static bool same_views(const planner *p, smg_node_id *io_a, smg_node_id *io_b) {
    while (smg_node_class(smg_graph_node(p->g, *io_a)) == SMG_CLASS_VIEW) {
        if (p->hash[*io_a] != p->hash[*io_b]) return false;
        *io_a = smg_graph_node(p->g, *io_a)->operand[0];
        *io_b = smg_graph_node(p->g, *io_b)->operand[0];
    }
    return smg_node_class(smg_graph_node(p->g, *io_b)) != SMG_CLASS_VIEW;
}

static bool same_operands(finder *f, int body, smg_node_id a, smg_node_id b) {
    const smg_node *x = smg_graph_node(f->p->g, a), *y = smg_graph_node(f->p->g, b);
    for (int k = 0; k < x->operand_count; k++) {
        smg_node_id first = x->operand[k], other = y->operand[k];
        if (!same_views(f->p, &first, &other)) return false;
        int own = number_in(f, 0, first);
        if (own >= 0 ? other != node_of(f, body, own) : !take_role(f, body, first, other)) return false;
    }
    return true;
}

/* Is the body like the first, but for what it begins with and its constants? */
static bool is_equal(finder *f, int body) {
    for (int i = 0; i < f->length; i++) {
        smg_node_id a = node_of(f, 0, i), b = node_of(f, body, i);
        if (f->p->hash[a] != f->p->hash[b] || !same_operands(f, body, a, b)) return false;
    }
    return f->made >= 0;
}

/* Is what the body computes read by itself, and what it makes by the next body at most? */
static bool is_closed(const finder *f, int body) {
    int end = f->from + (body + 1) * f->length;
    for (int i = 0; i < f->length; i++)
        if (f->p->last_use[node_of(f, body, i)] >= (i == f->made ? end + f->length : end)) return false;
    return true;
}

/* The last body's value may be read anywhere, nothing else of it. */
static bool is_last(const finder *f, int body) {
    int end = f->from + (body + 1) * f->length;
    for (int i = 0; i < f->length; i++)
        if (i != f->made && f->p->last_use[node_of(f, body, i)] >= end) return false;
    return true;
}

static int count_products(const finder *f) {
    int products = 0;
    for (int i = 0; i < f->length; i++)
        products += smg_node_class(smg_graph_node(f->p->g, node_of(f, 0, i))) == SMG_CLASS_CONTRACT;
    return products;
}

/* How many bodies of that length there are from here on; 0: it is no repetition. */
static int count_bodies(finder *f, int length) {
    int products, bodies = 1;
    f->length = length;
    f->most = (f->p->count - f->from) / length;
    f->made = -1;
    f->role_count = 0;
    if (f->most < LEAST_BODIES || f->p->hash[node_of(f, 0, 0)] != f->p->hash[node_of(f, 1, 0)]) return 0;
    products = count_products(f);
    if (products == 0 || products > PLAN_PRODUCTS) return 0;
    while (bodies < f->most && is_equal(f, bodies) && is_closed(f, bodies - 1)) bodies++;
    while (bodies > 1 && !is_last(f, bodies - 1)) bodies--;
    return bodies >= LEAST_BODIES ? bodies : 0;
}

/* Does nobody else read the constants of the bodies, and each body its own? Then they may lie one behind the other. */
static smg_status are_own(const finder *f, int bodies, bool *out_own) {
    const planner *p = f->p;
    bool *own = SMG_ARENA_ARRAY(f->arena, bool, (size_t)p->g->nodes.count + 1);
    *out_own = true;
    if (own == NULL) return SMG_MEMORY;
    for (int i = 0; i < f->role_count; i++)
        for (int b = 0; b < bodies && f->roles[i].what == OWN; b++) {
            smg_node_id id = f->roles[i].each[b];
            *out_own = *out_own && !own[id];
            own[id] = true;
        }
    for (smg_node_id id = 0; id < p->g->nodes.count && *out_own; id++) {
        const smg_node *n = smg_graph_node(p->g, id);
        bool inside = p->place[id] >= f->from && p->place[id] < f->from + bodies * f->length;
        if (!smg_node_computes(n) || p->prepared[id] != p->preparing || (inside && !p->inlined[id])) continue;
        for (int k = 0; k < n->operand_count; k++) *out_own = *out_own && !own[smg_space_source(p->g, n->operand[k])];
    }
    return SMG_OK;
}

/* May these constants lie one behind the other? */
static bool is_given(const planner *p, const role *r, int bodies, int64_t stride) {
    const smg_plan_options *o = p->options;
    bool given = o->stacks == NULL;
    for (int i = 0; i < o->stack_count && !given; i++) {
        given = o->stacks[i].count == bodies && o->stacks[i].stride == stride;
        for (int b = 0; given && b < bodies; b++)
            given = o->stacks[i].each[b] == (p->origin != NULL ? p->origin[r->each[b]] : r->each[b]);
    }
    return given;
}

static bool add_stack(const finder *f, const role *r, int bodies, smg_srepeat *out) {
    int64_t stride = stride_of(f->p, r->first), bytes = smg_type_device_bytes(smg_graph_storage(f->p->g, r->first));
    if (stride == 0 || out->stack_count == SMG_SPACE_STACKS) return false;
    if (stride > smg_target_largest_buffer(f->p->target) / bytes / bodies) return false;
    if (!is_given(f->p, r, bodies, stride)) return false;
    out->stack[out->stack_count++] = (smg_sstack){.each = r->each, .stride = stride};
    return true;
}

static smg_status describe(const finder *f, int bodies, smg_srepeat *out) {
    bool own;
    *out = (smg_srepeat){.count = bodies, .made = node_of(f, 0, f->made), .last = node_of(f, bodies - 1, f->made)};
    SMG_TRY(are_own(f, bodies, &own));
    for (int i = 0; i < f->role_count && own; i++) {
        if (f->roles[i].what == CARRIED) out->carried = f->roles[i].first;
        if (f->roles[i].what == OWN) own = add_stack(f, &f->roles[i], bodies, out);
    }
    if (!own) out->count = 0;
    return SMG_OK;
}

/* Is there one body more in front? Then the repetition begins there. */
static bool begins_before(const finder *f) {
    finder before = {.p = f->p, .arena = f->arena, .from = f->from - f->length};
    return before.from >= 0 && count_bodies(&before, f->length) > 0;
}

smg_status plan_find_repeat(const planner *p, int from, smg_arena *arena, int *out_length, smg_srepeat *out) {
    finder *f = SMG_ARENA_NEW(arena, finder);
    out->count = 0;
    if (f == NULL) return SMG_MEMORY;
    *f = (finder){.p = p, .arena = arena, .from = from};
    for (int length = 1; length <= PLAN_SEGMENT && from + LEAST_BODIES * length <= p->count; length++) {
        int bodies = count_bodies(f, length);
        if (bodies == 0) continue;
        *out_length = length;
        return begins_before(f) ? SMG_OK : describe(f, bodies, out);
    }
    return SMG_OK;
}
