/* Rewrites: passes over the graph until none changes anything. A pass copies the live nodes in order;
 * each goes through the rules until none fires and is then merged with an equal node of the same pass.
 * All passes share one arena and one pool of sizes, so folded constants live as long as the result. */
#include "rewrite/rewrite_internal.h"

#define MAX_PASSES 32
#define MAX_STEPS 64 /* of rules on one node; far more than any chain of them needs */
#define MAX_RULES 64

/* ---- equal nodes ---------------------------------------------------------------------------- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash_node(const smg_node *n) {
    uint64_t hash = smg_hash_u64(SMG_HASH_SEED, (uint64_t)n->op * 16u + (uint64_t)n->type);
    for (int i = 0; i < n->rank; i++) hash = smg_hash_u64(hash, (uint64_t)n->dims[i]);
    for (int k = 0; k < n->operand_count; k++) hash = smg_hash_u64(hash, (uint64_t)n->operand[k]);
    hash = smg_hash_u64(hash, (uint64_t)n->axis * 2u + (n->keep ? 1u : 0u));
    hash = smg_hash_u64(hash, (uint64_t)n->begin);
    hash = smg_hash_u64(hash, (uint64_t)n->size);
    for (int p = 0; p < 3; p++) hash = smg_hash_text(hash, n->label[p]);
    return smg_hash_u64(hash, bits_of(n->value));
}

static bool same_node(const smg_node *a, const smg_node *b) {
    if (a->op != b->op || a->type != b->type || !smg_same_dims(a, b)) return false;
    if (smg_op_is_input(a->op) || (smg_op_is_constant(a->op) && !a->data)) return false;
    for (int k = 0; k < a->operand_count; k++)
        if (a->operand[k] != b->operand[k]) return false;
    for (int p = 0; p < 3; p++)
        if (strcmp(a->label[p], b->label[p]) != 0) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->perm[i] != b->perm[i]) return false;
    return a->axis == b->axis && a->keep == b->keep && a->begin == b->begin && a->step == b->step &&
           a->dilation == b->dilation && a->size == b->size && bits_of(a->value) == bits_of(b->value) &&
           a->data == b->data;
}

static bool reserve_table(rewriter *r, int nodes) {
    int size = 64;
    while (size < nodes * 4) size *= 2;
    if (size > r->table_size) {
        r->table = SMG_ARENA_ARRAY(r->g->arena, int32_t, (size_t)size);
        r->table_size = r->table ? size : 0;
    } else {
        memset(r->table, 0, (size_t)r->table_size * sizeof *r->table);
    }
    return r->table != NULL;
}

static bool rehash(rewriter *r) {
    if (!reserve_table(r, r->table_size)) return false;
    uint64_t mask = (uint64_t)(r->table_size - 1);
    for (int i = 0; i < r->g->nodes.count; i++) {
        uint64_t slot = hash_node(&r->g->nodes.items[i]) & mask;
        while (r->table[slot]) slot = (slot + 1) & mask;
        r->table[slot] = i + 1;
    }
    return true;
}

smg_node_id smg_rewriter_add(rewriter *r, smg_node *node) {
    smg_node before = *node;
    if (r->g->nodes.count * 2 >= r->table_size && !rehash(r)) {
        smg_build_stick(r->g, SMG_MEMORY);
        return -1;
    }
    uint64_t mask = (uint64_t)(r->table_size - 1), slot = hash_node(node) & mask;
    for (; r->table[slot]; slot = (slot + 1) & mask) {
        smg_node *known = &r->g->nodes.items[r->table[slot] - 1];
        if (!same_node(known, node)) continue;
        if (!known->name[0]) known->name = node->name;
        r->merged++;
        return r->table[slot] - 1;
    }
    smg_node_id id = smg_graph_push(r->g, node);
    if (id < 0) return -1;
    if (before.type != node->type || !smg_same_dims(&before, node)) {
        smg_build_stick(r->g, smg_fail(r->g->ctx, SMG_INTERNAL, "a rewrite changed the shape or type of %s",
                                       smg_graph_describe(r->g, id)));
        return -1;
    }
    r->table[slot] = id + 1;
    return id;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static const rewrite_rule fold_rules[] = {
    {"fold numbers", smg_rule_fold_numbers},
    {"fold small constants", smg_rule_fold_constants},
};

typedef struct rule_set {
    const rewrite_rule *rule[MAX_RULES];
    int fired[MAX_RULES];
    int count;
} rule_set;

static void add_rules(rule_set *set, const rewrite_rule *rules, int count) {
    for (int i = 0; i < count && set->count < MAX_RULES; i++) set->rule[set->count++] = &rules[i];
}

/* The first rule that fires, or -1. */
static int apply_one(rewriter *r, const rule_set *set, smg_node *node, smg_node_id *out_same) {
    for (int i = 0; i < set->count; i++)
        if (set->rule[i]->apply(r, node, out_same)) return i;
    return -1;
}

/* A node that equals `node`, after all rules; takes over its name where that one has none. */
static smg_node_id settle(rewriter *r, rule_set *set, smg_node *node) {
    for (int step = 0; step < MAX_STEPS && r->g->status == SMG_OK; step++) {
        smg_node_id same = -1;
        int fired = apply_one(r, set, node, &same);
        if (fired < 0) break;
        set->fired[fired]++;
        r->applied++;
        if (same < 0) continue;
        smg_node *target = &r->g->nodes.items[same];
        if (!target->name[0] && !smg_op_is_input(target->op)) target->name = node->name;
        return same;
    }
    return r->g->status == SMG_OK ? smg_rewriter_add(r, node) : -1;
}

/* ---- passes --------------------------------------------------------------------------------- */

static void mark_live(const smg_graph *g, bool *live) {
    smg_graph_mark_live(g, live);
    for (int i = 0; i < g->nodes.count; i++)
        if (smg_node_is_input(&g->nodes.items[i])) live[i] = true; /* the interface stays */
}

int smg_rewriter_uses(const rewriter *r, smg_node_id id) {
    int uses = id < r->uses_size ? r->uses[id] : 0;
    return uses == 1 ? 1 : 2;
}

static void count_uses(const smg_graph *g, const bool *live, int *uses) {
    for (int i = 0; i < g->nodes.count; i++) {
        const smg_node *node = &g->nodes.items[i];
        for (int k = 0; live[i] && k < node->operand_count; k++) uses[node->operand[k]]++;
    }
    for (int i = 0; i < g->outputs.count; i++) uses[g->outputs.items[i].node]++;
}

/* Rebuilds r->g->nodes; r->applied + merged + dead tells whether anything changed. */
static smg_status run_pass(rewriter *r, rule_set *set) {
    smg_graph *g = r->g;
    int count = g->nodes.count;
    const smg_node *old = g->nodes.items;
    bool *live = SMG_ARENA_ARRAY(g->arena, bool, (size_t)count);
    smg_node_id *now = SMG_ARENA_ARRAY(g->arena, smg_node_id, (size_t)count);
    int *uses = SMG_ARENA_ARRAY(g->arena, int, (size_t)count);
    r->uses_size = count * 2;
    r->uses = SMG_ARENA_ARRAY(g->arena, int, (size_t)r->uses_size);
    if (!live || !now || !uses || !r->uses || !reserve_table(r, count)) return SMG_MEMORY;
    mark_live(g, live);
    count_uses(g, live, uses);
    g->nodes.items = NULL;
    g->nodes.count = g->nodes.capacity = 0;
    r->known.count = 0;
    for (int i = 0; i < count; i++) {
        if (!live[i]) {
            r->dead++;
            continue;
        }
        smg_node node = old[i];
        for (int k = 0; k < node.operand_count; k++) node.operand[k] = now[node.operand[k]];
        now[i] = settle(r, set, &node);
        if (now[i] < 0) return g->status != SMG_OK ? g->status : SMG_MEMORY;
        if (now[i] < r->uses_size) r->uses[now[i]] += uses[i];
    }
    for (int i = 0; i < g->outputs.count; i++) g->outputs.items[i].node = now[g->outputs.items[i].node];
    return SMG_OK;
}

static smg_status copy_graph(const smg_graph *from, smg_graph *to) {
    for (int i = 0; i < from->nodes.count; i++) {
        smg_node *node = SMG_ARRAY_PUSH(to->arena, &to->nodes);
        if (!node) return SMG_MEMORY;
        *node = from->nodes.items[i];
        SMG_TRY(smg_node_import(to, from, node));
    }
    for (int i = 0; i < from->outputs.count; i++) {
        smg_graph_output_row *row = SMG_ARRAY_PUSH(to->arena, &to->outputs);
        if (!row) return SMG_MEMORY;
        *row = from->outputs.items[i];
        row->name = smg_arena_string(to->arena, row->name);
        if (row->state) row->state = smg_arena_string(to->arena, row->state);
        if (!row->name || (from->outputs.items[i].state && !row->state)) return SMG_MEMORY;
    }
    return SMG_OK;
}

static smg_status add_count(smg_graph *g, smg_rewrite_report *report, const char *rule, int applied) {
    smg_rewrite_count *row = SMG_ARRAY_PUSH(g->arena, &report->rules);
    if (!row) return SMG_MEMORY;
    *row = (smg_rewrite_count){rule, applied};
    return SMG_OK;
}

static smg_status fill_report(const rewriter *r, const rule_set *set, smg_rewrite_report *report) {
    for (int i = 0; i < set->count; i++) SMG_TRY(add_count(r->g, report, set->rule[i]->name, set->fired[i]));
    SMG_TRY(add_count(r->g, report, "merge equal nodes", r->merged));
    SMG_TRY(add_count(r->g, report, "drop dead nodes", r->dead));
    report->nodes_after = r->g->nodes.count;
    return SMG_OK;
}

static smg_status rewrite(rewriter *r, const smg_graph *from, smg_rewrite_report *report) {
    rule_set set = {.count = 0};
    add_rules(&set, smg_canonical_rules, smg_canonical_rule_count);
    add_rules(&set, fold_rules, (int)SMG_COUNT_OF(fold_rules));
    add_rules(&set, smg_algebra_rules, smg_algebra_rule_count);
    add_rules(&set, smg_gate_rules, smg_gate_rule_count);
    add_rules(&set, smg_integer_rules, smg_integer_rule_count);
    add_rules(&set, smg_index_rules, smg_index_rule_count);
    add_rules(&set, smg_range_rules, smg_range_rule_count);
    add_rules(&set, smg_scale_rules, smg_scale_rule_count);
    SMG_TRY(copy_graph(from, r->g));
    SMG_TRY(smg_exprs_create(r->g->arena, &r->exprs));
    for (int pass = 0, before = -1; pass < MAX_PASSES && r->applied + r->merged + r->dead != before; pass++) {
        before = r->applied + r->merged + r->dead;
        SMG_TRY(run_pass(r, &set));
    }
    SMG_TRY(smg_graph_finish(r->g));
    return fill_report(r, &set, report);
}

smg_status smg_rewrite_graph(const smg_graph *g, smg_graph **out_graph, smg_rewrite_report *out_report) {
    smg_rewrite_report unused, *report = out_report ? out_report : &unused;
    *out_graph = NULL;
    memset(report, 0, sizeof *report);
    report->nodes_before = g->nodes.count;
    if (!g->finished) return smg_fail(g->ctx, SMG_INVALID, "graph %s is not finished", g->name);
    rewriter r = {.table_size = 0};
    SMG_TRY(smg_graph_create_like(g, &r.g));
    smg_status status = rewrite(&r, g, report);
    if (status == SMG_OK) {
        *out_graph = r.g;
        return SMG_OK;
    }
    smg_graph_destroy(r.g);
    memset(report, 0, sizeof *report);
    return status;
}
