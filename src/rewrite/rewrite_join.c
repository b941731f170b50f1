/* Products of one left operand. Where several products multiply the same rows, each with a constant of its own, and
 * nothing elementwise follows that would end their kernels (views and further products do), they become one with all
 * columns beside each other: no lane divides its registers among several sums. Constants become one by the prepare
 * list, those that are added to each of them, too; a number that multiplies what one of them gives goes into its
 * constants; readers take slices. Only of so few results that the product is one block for each core, read straight
 * from memory: on one GPU three products of 128 x 768 by 768 took 10.2 us in place of 12.2, and a model with 512 rows
 * 1 % longer than with three products in one kernel. */
#include "rewrite/rewrite_internal.h"

#include <math.h>

#define MOST_JOINED 4
#define MOST_SCALED 64 /* times as small, at most: constants keep their digits in 16 bits; larger ones may overflow */

enum { NONE = -1, APART = -2 };

typedef struct joined {
    int count;
    smg_node_id product[MOST_JOINED]; /* old ids */
    smg_node_id end[MOST_JOINED];     /* the product, or what adds a constant to it */
    smg_node_id scale[MOST_JOINED];   /* what multiplies that, or a view of it, by a number; -1: nothing does */
    bool adds;
} joined;

typedef struct joiner {
    smg_graph *g;
    const smg_node *old;
    int count;
    const smg_store_options *options;
    bool *fixed, *stored, *open; /* per old node; open: what reads it is more than views and products */
    int *readers;
    smg_node_id *reader; /* the last one */
    smg_node_id *now;    /* old id -> new id */
    int *group;          /* per old node: which it belongs to; NONE, or APART: a group that is too large has it */
    bool *scaled;        /* per old node: its number is in a product's constants */
    SMG_ARRAY(joined) groups;
} joiner;

/* ---- which ------------------------------------------------------------------------------------------- */

static smg_node_id source_of(const joiner *j, smg_node_id id) {
    return smg_rewrite_source(j->old, id);
}

static void count_readers(joiner *j) {
    for (int i = 0; i < j->count; i++) {
        const smg_node *n = &j->old[i];
        for (int k = 0; k < n->operand_count; k++) {
            j->readers[n->operand[k]]++;
            j->reader[n->operand[k]] = i;
            smg_op_class class_ = smg_node_class(n);
            if (class_ != SMG_CLASS_VIEW && class_ != SMG_CLASS_CONTRACT) j->open[source_of(j, n->operand[k])] = true;
        }
    }
    for (int o = 0; o < j->g->outputs.count; o++) {
        smg_node_id id = j->g->outputs.items[o].node;
        j->readers[id]++;
        j->open[source_of(j, id)] = true;
    }
}

/* The axis of the constant that the result has last, where it has just one other, which is contracted; -1. */
static int column_of(const smg_node *product) {
    const char *right = product->label[1], *result = product->label[2];
    size_t rank = strlen(result);
    for (int d = 0; rank > 0 && strlen(right) == 2 && d < 2; d++) {
        bool contracted = strchr(product->label[0], right[1 - d]) != NULL && strchr(result, right[1 - d]) == NULL;
        if (right[d] == result[rank - 1] && strchr(product->label[0], right[d]) == NULL && contracted) return d;
    }
    return -1;
}

static int64_t elements_at(const joiner *j, const smg_node *n) {
    return smg_rewrite_elements_at(j->g->sizes, n, j->options->nominal);
}

/* Rows enough for matrices, and a constant that may lie in blocks. */
static bool is_product(const joiner *j, const smg_node *n) {
    const smg_weight_blocks *b = &j->options->blocks;
    int64_t columns, depth;
    if (smg_node_class(n) != SMG_CLASS_CONTRACT || j->fixed[n->operand[0]] || !j->fixed[n->operand[1]] ||
        !j->stored[n->operand[1]])
        return false;
    const smg_node *right = &j->old[n->operand[1]];
    int column = column_of(n);
    return column >= 0 && smg_size_is_const(j->g->sizes, right->dims[column], &columns) && columns > 0 &&
           smg_size_is_const(j->g->sizes, right->dims[1 - column], &depth) && columns % b->rows == 0 &&
           depth % b->cols == 0 && elements_at(j, n) / columns >= b->least;
}

/* Is operand k of the sum one constant for each column? */
static bool is_row(const joiner *j, const smg_node *sum, int k) {
    const smg_node *n = &j->old[sum->operand[k]];
    if (!j->fixed[sum->operand[k]] || !j->stored[sum->operand[k]] || n->rank < 1) return false;
    for (int d = 0; d + 1 < n->rank; d++)
        if (!smg_size_is_one(j->g->sizes, n->dims[d])) return false;
    return n->dims[n->rank - 1] == sum->dims[sum->rank - 1];
}

/* Which operand of the sum is not the product. */
static int other_of(const smg_node *sum, smg_node_id product) {
    return sum->operand[0] == product ? 1 : 0;
}

/* Is it a number that constants may be multiplied by? */
static bool is_scale(const joiner *j, smg_node_id id) {
    const smg_node *n = &j->old[id];
    double size = fabs(n->value);
    return smg_op_leaf(n->op) == SMG_LEAF_NUMBER && n->rank == 0 && size * MOST_SCALED >= 1 && size <= 1;
}

/* Which operand of a multiple is that number. */
static int scale_at(const joiner *j, const smg_node *multiple) {
    return is_scale(j, multiple->operand[0]) ? 0 : 1;
}

/* The only reader of the value, or of a view of it that nobody else reads, where that multiplies by a number. */
static smg_node_id scale_of(const joiner *j, smg_node_id value) {
    while (j->readers[value] == 1) {
        smg_node_id reader = j->reader[value];
        const smg_node *n = &j->old[reader];
        if (n->op == SMG_OP_MUL && is_scale(j, n->operand[other_of(n, value)])) return reader;
        if (smg_node_class(n) != SMG_CLASS_VIEW) return -1;
        value = reader;
    }
    return -1;
}

/* What of the product others read, but for a number's multiple; false: something elementwise follows. */
static bool find_end(const joiner *j, smg_node_id product, smg_node_id *out_end, smg_node_id *out_scale) {
    smg_node_id reader = j->reader[product];
    bool adds = j->readers[product] == 1 && j->old[reader].op == SMG_OP_ADD;
    if (adds && !is_row(j, &j->old[reader], other_of(&j->old[reader], product))) return false;
    *out_end = adds ? reader : product;
    *out_scale = scale_of(j, *out_end);
    return j->readers[*out_end] > 0 && !j->open[*out_scale >= 0 ? *out_scale : *out_end];
}

static bool are_alike(const joiner *j, smg_node_id a, smg_node_id b) {
    const smg_node *x = &j->old[a], *y = &j->old[b];
    const smg_node *right = &j->old[x->operand[1]], *other = &j->old[y->operand[1]];
    bool same = x->operand[0] == y->operand[0] && x->type == y->type && right->type == other->type;
    for (int k = 0; k < 3; k++) same = same && strcmp(x->label[k], y->label[k]) == 0;
    return same && right->dims[1 - column_of(x)] == other->dims[1 - column_of(y)];
}

static smg_status find(joiner *j) {
    for (int i = 0; i < j->count; i++) {
        joined g = {.count = 0};
        int64_t results = 0;
        if (!is_product(j, &j->old[i])) continue;
        for (int n = i; n < j->count && g.count < MOST_JOINED && j->group[i] == NONE; n++) {
            if (j->group[n] != NONE || !is_product(j, &j->old[n]) || !are_alike(j, i, n)) continue;
            smg_node_id end, scale;
            bool fits = find_end(j, n, &end, &scale) && (g.count == 0 || (end != n) == g.adds);
            if (!fits && n == i) break;
            if (!fits) continue;
            g.adds = end != n;
            results += elements_at(j, &j->old[n]);
            g.product[g.count] = n;
            g.scale[g.count] = scale;
            g.end[g.count++] = end;
        }
        bool fits = results <= j->options->few_joined;
        for (int n = 0; n < g.count && !fits; n++) j->group[g.product[n]] = APART;
        if (g.count < 2 || !fits) continue;
        joined *slot = SMG_ARRAY_PUSH(j->g->arena, &j->groups);
        if (slot == NULL) return SMG_MEMORY;
        *slot = g;
        for (int n = 0; n < g.count; n++) {
            j->group[g.product[n]] = j->group[g.end[n]] = j->groups.count - 1;
            if (g.scale[n] >= 0) j->scaled[g.scale[n]] = true;
        }
    }
    return SMG_OK;
}

/* ---- the new graph ----------------------------------------------------------------------------------- */

static smg_value value_of(const joiner *j, smg_node_id id) {
    return (smg_value){j->now[id] + 1};
}

/* The constant of the n-th product, with its number. */
static smg_value constant_of(joiner *j, const joined *group, int n, smg_value constant) {
    smg_node_id scale = group->scale[n];
    if (scale < 0) return constant;
    smg_node_id number = j->old[scale].operand[scale_at(j, &j->old[scale])];
    return smg_graph_map(j->g, "mul", 2, (smg_value[]){constant, value_of(j, number)});
}

static smg_value join_rows(joiner *j, const joined *group) {
    smg_value rows[MOST_JOINED];
    for (int n = 0; n < group->count; n++) {
        const smg_node *sum = &j->old[group->end[n]];
        smg_node_id row = sum->operand[other_of(sum, group->product[n])];
        rows[n] = smg_graph_reshape_to(j->g, value_of(j, row), 1, &sum->dims[sum->rank - 1]);
        rows[n] = constant_of(j, group, n, rows[n]);
    }
    return smg_graph_concat(j->g, group->count, rows, 0);
}

static smg_status join(joiner *j, const joined *group) {
    smg_graph *g = j->g;
    smg_value right[MOST_JOINED];
    smg_node product = j->old[group->product[0]];
    for (int n = 0; n < group->count; n++)
        right[n] = constant_of(j, group, n, value_of(j, j->old[group->product[n]].operand[1]));
    product.operand[0] = j->now[product.operand[0]];
    product.operand[1] = smg_graph_concat(g, group->count, right, column_of(&product)).id - 1;
    product.name = "";
    smg_value all = {smg_graph_push(g, &product) + 1};
    if (group->adds) {
        smg_node sum = {.op = SMG_OP_ADD, .type = product.type, .operand_count = 2, .name = ""};
        sum.operand[0] = all.id - 1;
        sum.operand[1] = join_rows(j, group).id - 1;
        all.id = smg_graph_push(g, &sum) + 1;
    }
    smg_size begin = SMG_SIZE_ZERO;
    for (int n = 0; n < group->count && g->status == SMG_OK; n++) {
        const smg_node *end = &j->old[group->end[n]];
        smg_size columns = end->dims[end->rank - 1];
        smg_value slice = smg_graph_slice_of(g, all, end->rank - 1, begin, columns, 1);
        j->now[group->end[n]] = slice.id - 1;
        if (slice.id > 0) g->nodes.items[slice.id - 1].name = end->name;
        begin = smg_size_add(g->sizes, begin, columns);
    }
    return g->status;
}

static smg_status keep(joiner *j, int i) {
    smg_node node = j->old[i];
    for (int k = 0; k < node.operand_count; k++) node.operand[k] = j->now[node.operand[k]];
    smg_node *slot = SMG_ARRAY_PUSH(j->g->arena, &j->g->nodes);
    if (slot == NULL) return SMG_MEMORY;
    *slot = node;
    j->now[i] = j->g->nodes.count - 1;
    return SMG_OK;
}

/* Constants first, since a product joins those of later ones. */
static smg_status rebuild(joiner *j) {
    for (int i = 0; i < j->count; i++)
        if (j->fixed[i]) SMG_TRY(keep(j, i));
    for (int i = 0; i < j->count; i++) {
        if (j->fixed[i]) continue;
        if (j->scaled[i])
            j->now[i] = j->now[j->old[i].operand[1 - scale_at(j, &j->old[i])]];
        else if (j->group[i] < 0)
            SMG_TRY(keep(j, i));
        else if (j->groups.items[j->group[i]].product[0] == i)
            SMG_TRY(join(j, &j->groups.items[j->group[i]]));
    }
    for (int o = 0; o < j->g->outputs.count; o++) j->g->outputs.items[o].node = j->now[j->g->outputs.items[o].node];
    return SMG_OK;
}

smg_status smg_rewrite_join_products(smg_graph *g, const smg_store_options *options, int *out_joined) {
    size_t count = (size_t)g->nodes.count + 1;
    joiner j = {.g = g, .old = g->nodes.items, .count = g->nodes.count, .options = options};
    *out_joined = 0;
    if (options->blocks.rows == 0) return SMG_OK;
    j.fixed = SMG_ARENA_ARRAY(g->arena, bool, count);
    j.stored = SMG_ARENA_ARRAY(g->arena, bool, count);
    j.open = SMG_ARENA_ARRAY(g->arena, bool, count);
    j.readers = SMG_ARENA_ARRAY(g->arena, int, count);
    j.reader = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    j.now = SMG_ARENA_ARRAY(g->arena, smg_node_id, count);
    j.scaled = SMG_ARENA_ARRAY(g->arena, bool, count);
    j.group = SMG_ARENA_ARRAY(g->arena, int, count);
    if (!j.fixed || !j.stored || !j.open || !j.readers || !j.reader || !j.now || !j.scaled || !j.group)
        return SMG_MEMORY;
    for (int i = 0; i < j.count; i++) j.group[i] = NONE;
    smg_graph_mark_fixed(g, j.fixed, j.stored);
    count_readers(&j);
    SMG_TRY(find(&j));
    if (j.groups.count == 0) return SMG_OK;
    bool finished = g->finished;
    g->finished = false;
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    SMG_TRY(rebuild(&j));
    g->finished = finished;
    for (int i = 0; i < j.groups.count; i++) *out_joined += j.groups.items[i].count;
    return smg_context_status(g->ctx);
}
