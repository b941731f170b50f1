/* Segments: which nodes they are, by the hash of their structure. Layers repeat, so what is known of a segment is kept
 * under that, for as long as the driver thinks alike of them. */
#include <math.h>

#include "plan/plan_segment.h"

void plan_hash_node(const planner *p, smg_node_id id) {
    uint64_t seed = smg_hash_u64(SMG_HASH_SEED, smg_graph_storage(p->g, id));
    p->hash[id] = smg_node_hash(p->g, seed, smg_graph_node(p->g, id), NULL);
    p->hash_at[id] = smg_node_hash(p->g, seed, smg_graph_node(p->g, id), p->nominal);
}

/* *io_id: what the views are of. */
static uint64_t hash_view_chain(const planner *p, const uint64_t *hash, uint64_t h, smg_node_id *io_id) {
    for (;;) {
        const smg_node *n = smg_graph_node(p->g, *io_id);
        h = smg_hash_u64(h, hash[*io_id]);
        if (smg_node_class(n) != SMG_CLASS_VIEW) return h;
        *io_id = n->operand[0];
    }
}

uint64_t plan_hash_nodes(const planner *p, const uint64_t *hash, const smg_node_id *nodes, int count) {
    uint64_t h = smg_hash_u64(SMG_HASH_SEED, (uint64_t)count);
    smg_node_id read[PLAN_MAX_MEMBERS * SMG_MAX_OPERANDS];
    int reads = 0;
    for (int i = 0; i < count; i++) p->spots[nodes[i]].member = i + 1;
    for (int i = 0; i < count; i++) {
        const smg_node *n = smg_graph_node(p->g, nodes[i]);
        h = smg_hash_u64(h, hash[nodes[i]]);
        h = smg_hash_u64(h, p->needed[nodes[i]]);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = n->operand[k];
            h = hash_view_chain(p, hash, h, &source);
            plan_spot *spot = &p->spots[source];
            if (spot->member > 0) h = smg_hash_u64(h, (uint64_t)spot->member + 999);
            if (spot->read == 0) { /* which tensor: the same one twice is another structure */
                read[reads++] = source;
                spot->read = reads;
            }
            h = smg_hash_u64(h, (uint64_t)spot->read - 1);
        }
    }
    for (int i = 0; i < count; i++) p->spots[nodes[i]].member = 0;
    for (int i = 0; i < reads; i++) p->spots[read[i]].read = 0;
    return h;
}

/* repeat.count 0: there are no equal bodies. */
static smg_status find_bodies(planner *p, int from, smg_arena *arena, segment_members *out) {
    out->alone = false;
    out->count = 0;
    SMG_TRY(plan_find_repeat(p, from, arena, &out->body, &out->repeat));
    if (out->repeat.count > 0) out->count = plan_members(p, from, from + out->body, out->nodes);
    return SMG_OK;
}

smg_status plan_find_members(planner *p, int from, int to, int body, smg_arena *arena, segment_members *out) {
    if (body > 0) return find_bodies(p, from, arena, out);
    out->alone = to - from == 1;
    out->body = out->repeat.count = 0;
    out->count = plan_members(p, from, to, out->nodes);
    return SMG_OK;
}

const smg_cut *plan_find_cut(const planner *p, uint64_t at, bool parts) {
    const smg_plan_options *o = p->options;
    const smg_cut *found = NULL;
    if (o->objective != SMG_OBJECTIVE_TIME || o->rank > 0 || o->unfused) return NULL;
    for (int i = 0; i < o->cut_count; i++)
        if (o->cuts[i].at == at && (o->cuts[i].kind == SMG_CUT_PARTS) == parts) found = &o->cuts[i];
    return found;
}

/* Is it one kernel, or not, because that was measured? */
static smg_status apply_cut(planner *p, segment *s) {
    if (!s->possible) return SMG_OK;
    const smg_cut *cut = plan_find_cut(p, s->at, false);
    if (cut == NULL) return SMG_OK;
    if (cut->kind == SMG_CUT_TOGETHER) {
        s->cut = cut;
        return SMG_OK;
    }
    s->possible = false;
    s->refused = smg_arena_format(p->kept_in, "a run took %.2f us so, %.2f us apart, as was measured",
                                  cut->seconds * 1e6, cut->apart * 1e6);
    return s->refused != NULL ? SMG_OK : SMG_MEMORY;
}

/* What bodies have in common is a part of their structure. */
static uint64_t hash_members(const planner *p, const uint64_t *hash, const segment_members *of) {
    const smg_srepeat *r = &of->repeat;
    uint64_t h = plan_hash_nodes(p, hash, of->nodes, of->count);
    if (r->count == 0) return h;
    h = smg_hash_u64(h, (uint64_t)r->count);
    for (int i = 0; i < of->count; i++) {
        const smg_node *n = smg_graph_node(p->g, of->nodes[i]);
        h = smg_hash_u64(h, of->nodes[i] == r->made);
        for (int k = 0; k < n->operand_count; k++) {
            smg_node_id source = smg_space_source(p->g, n->operand[k]);
            uint64_t what = source == r->carried;
            for (int s = 0; s < r->stack_count; s++)
                if (r->stack[s].each[0] == source) what = 2;
            h = smg_hash_u64(h, what);
        }
    }
    return h;
}

/* A node alone may always. */
static bool may_price(const planner *p, const segment_members *of) {
    plan_budget *b = p->budget;
    bool may = b == NULL || b->priced < b->most || of->alone;
    if (b != NULL) b->priced += may;
    if (b != NULL) b->refused += !may;
    return may;
}

/* *io has its keys. */
static smg_status price(planner *p, const segment_members *of, double within, segment *io) {
    *io = (segment){.key = io->key, .structure = io->structure, .kept = io->kept};
    SMG_TRY(plan_try_segment(p, of, within, io, NULL));
    if (!of->alone) SMG_TRY(apply_cut(p, io));
    if (of->repeat.count > 0) io->body = of->body;
    return SMG_OK;
}

static smg_status segment_of(planner *p, const segment_members *of, double within, const segment **out_segment) {
    static const segment crowded = {.refused = "too many nodes for one kernel", .hopeless = true};
    static const segment unpriced = {.refused = "as many segments have a price as may"};
    void *found;
    *out_segment = &crowded;
    if (of->count < 0) return SMG_OK;
    uint64_t key = hash_members(p, p->hash, of),
             kept = smg_hash_u64(key, (uint64_t)plan_too_many_registers(p, key, of));
    if (smg_map_get(p->cache, &kept, sizeof(kept), &found)) {
        segment *known = found;
        *out_segment = known;
        return known->least > 0 && known->least <= within ? price(p, of, within, known) : SMG_OK;
    }
    if (!may_price(p, of)) {
        *out_segment = &unpriced;
        return SMG_OK;
    }
    segment *s = SMG_ARENA_NEW(p->kept_in, segment);
    if (s == NULL) return SMG_MEMORY;
    s->key = key;
    s->structure = hash_members(p, p->hash_at, of);
    s->kept = kept;
    SMG_TRY(price(p, of, within, s));
    *out_segment = s;
    return smg_map_set(p->cache, &kept, sizeof(kept), s);
}

bool plan_is_bounded(const planner *p) {
    const smg_plan_options *o = p->options;
    bool limits = o->min_gain > 0 || o->max_live > 0 || o->memory_pressure > 0;
    return o->objective != SMG_OBJECTIVE_MEMORY && o->cut_count == 0 && !limits && !o->report && !o->search;
}

smg_status plan_segment_within(planner *p, int from, int to, double seconds, const segment **out_segment) {
    segment_members of;
    bool bounded = plan_is_bounded(p) && p->options->objective == SMG_OBJECTIVE_TIME;
    SMG_TRY(plan_find_members(p, from, to, 0, NULL, &of));
    return segment_of(p, &of, bounded ? seconds : HUGE_VAL, out_segment);
}

smg_status plan_segment(planner *p, int from, int to, const segment **out_segment) {
    return plan_segment_within(p, from, to, HUGE_VAL, out_segment);
}

smg_status plan_repeated_segment(planner *p, int from, int *out_to, const segment **out_segment) {
    segment_members of;
    smg_arena *scratch = NULL;
    *out_segment = NULL;
    SMG_TRY(smg_arena_create(p->ctx, &scratch));
    smg_status status = find_bodies(p, from, scratch, &of);
    if (status == SMG_OK && of.repeat.count > 0) {
        *out_to = from + of.repeat.count * of.body;
        status = segment_of(p, &of, HUGE_VAL, out_segment);
    }
    smg_arena_destroy(scratch);
    return status;
}
