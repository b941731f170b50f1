/* Pipelining. A slice that is staged where it is needed is waited for there, once a step. Here the wait is moved behind
 * work: the slice is fetched into registers in front of the last product before its place, travels while that product
 * runs, and is put into shared memory where it was staged. Where that product is one of the step before, the slice
 * fetched is the next one, and the first is fetched in front of the loop. One product hides a load; fetching earlier
 * keeps its registers longer, which schedules may ask for where matrices make products short.
 *
 * With slots a slice need not wait until all have read the one before: it goes into the slot behind. A schedule that
 * asks for them gets one barrier a step where there were two: a slice is put beside the products of the step before, in
 * front of the barrier that stands behind them anyway. It costs the shared memory of every slot, and the registers of
 * the slices that are under way together. */
#include "lower/lower_internal.h"

typedef struct loop_range {
    int begin, end;
    int puts; /* where those of first slices begin, in front of it; -1: there are none */
} loop_range;

typedef struct stage_reads {
    const lowering *l;
    loop_range loop;
    bool good;
} stage_reads;

/* A slice may be fetched early when nothing that it reads is written inside the loop. */
static void check_read(void *user, int leaf) {
    stage_reads *r = user;
    const smg_kleaf *f = &r->l->k->leaves.items[leaf];
    if (f->what != SMG_KLEAF_TILE) return;
    for (int i = r->loop.begin; i < r->loop.end; i++) {
        if (r->l->k->code.items[i].dst == f->index) r->good = false;
    }
}

static bool eligible(const lowering *l, loop_range loop, int at) {
    const smg_instr *stage = &l->k->code.items[at];
    int axis = l->k->code.items[loop.begin].axes[0];
    if (stage->kind != SMG_I_STAGE || !(lower_expr_axes(l, stage->expr) & SMG_AXIS_BIT(axis))) return false;
    stage_reads r = {.l = l, .loop = loop, .good = true};
    smg_expr_leaves(l->k->exprs, stage->expr, check_read, &r);
    return r.good;
}

/* Where the last products of body[from, to) begin, those that no barrier parts: an instruction, or the inner loop
 * around it; -1. */
static int last_products(const lowering *l, int from, int to) {
    int depth = 0, found = -1, inner = from;
    bool parted = true;
    for (int i = from; i < to; i++) {
        smg_instr_kind kind = l->k->code.items[i].kind;
        if (kind == SMG_I_LOOP && depth++ == 0) inner = i;
        if (kind == SMG_I_END) depth--;
        if (kind == SMG_I_BARRIER && depth == 0) parted = true;
        if (kind != SMG_I_MMA || (!parted && found >= 0)) continue;
        found = depth > 0 ? inner : i;
        parted = false;
    }
    return found;
}

/* Where the first products begin, of the loop's own body. */
static int first_products(const lowering *l, loop_range loop) {
    int depth = 0, inner = loop.begin + 1;
    for (int i = loop.begin + 1; i < loop.end; i++) {
        smg_instr_kind kind = l->k->code.items[i].kind;
        if (kind == SMG_I_LOOP && depth++ == 0) inner = i;
        if (kind == SMG_I_END) depth--;
        if (kind == SMG_I_MMA) return depth > 0 ? inner : i;
    }
    return -1;
}

static smg_status split(lowering *l, loop_range loop, int at) {
    smg_instr stage = l->k->code.items[at], fetch = stage, put = stage;
    const smg_tile *shared = &l->k->tiles.items[stage.dst];
    int before = last_products(l, loop.begin + 1, at);
    int place = before >= 0 ? before : l->s->ahead > 1 ? first_products(l, loop) : last_products(l, at + 1, loop.end);
    if (place < 0) return SMG_OK;
    int tile = lower_new_tile(l, "next", smg_tile_kind(shared), SMG_STAGING, stage.axes, stage.axis_count, 0);
    if (tile < 0) return SMG_MEMORY;
    put.kind = SMG_I_PUT;
    put.a = tile;
    put.expr = SMG_EXPR_NONE;
    l->k->code.items[at] = put;
    fetch.kind = SMG_I_FETCH;
    fetch.dst = tile;
    fetch.a = l->k->code.items[loop.begin].axes[0];
    fetch.ahead = before >= 0 ? 0 : 1;
    fetch.note = before >= 0 ? "on its way during the product" : "the next slice, on its way during the product";
    SMG_TRY(lower_insert(l->k, place, fetch));
    if (before >= 0) return SMG_OK;
    fetch.ahead = 0;
    fetch.note = "the first slice";
    return lower_insert(l->k, loop.begin, fetch);
}

/* One instruction of the loop fills the tile, and all that read it are inside of it. */
static bool inside(const lowering *l, loop_range loop, int tile) {
    int writers = 0;
    for (int i = 0; i < l->k->code.count; i++) {
        const smg_instr *in = &l->k->code.items[i];
        bool reads = (smg_instr_reads_a(in) && in->a == tile) || (in->kind == SMG_I_MMA && in->b == tile);
        writers += in->dst == tile;
        if ((reads || in->dst == tile) && (i <= loop.begin || i >= loop.end)) return false;
    }
    for (int f = 0; f < l->k->leaves.count; f++) /* expressions are not looked through */
        if (l->k->leaves.items[f].what == SMG_KLEAF_TILE && l->k->leaves.items[f].index == tile) return false;
    return writers == 1;
}

/* ---- together ------------------------------------------------------------------------------------- */

/* Slices that products of one step wait for in turn are staged together, in front of the first of these products. All
 * travel during a whole step then, and are put between the same two barriers; their registers are held all the time. */
static bool stage_together(lowering *l, loop_range loop) {
    int depth = 0, first = -1;
    bool any = false;
    for (int i = loop.begin + 1; i < loop.end; i++) {
        smg_instr_kind kind = l->k->code.items[i].kind;
        depth += (kind == SMG_I_LOOP) - (kind == SMG_I_END);
        if (depth > 0 || !eligible(l, loop, i)) continue;
        bool behind = last_products(l, loop.begin + 1, i) >= 0;
        if (!behind) first = i;
        if (!behind || first < 0 || !inside(l, loop, l->k->code.items[i].dst)) continue;
        smg_instr stage = l->k->code.items[i], *to = &l->k->code.items[++first];
        memmove(to + 1, to, (size_t)(i - first) * sizeof stage);
        *to = stage;
        any = true;
    }
    return any;
}

/* ---- slots ---------------------------------------------------------------------------------------- */

static void give_slots(lowering *l, loop_range loop, int tile) {
    l->k->tiles.items[tile].slots = l->s->slots;
    l->k->tiles.items[tile].ring = l->k->code.items[loop.begin].axes[0];
}

/* The first barrier of the loop's own from `from` on, or the last one in front of `to`; its END where there is none. */
static int barrier_between(const lowering *l, loop_range loop, int from, int to, bool last) {
    int depth = 0, found = loop.end;
    for (int i = from; i < to && (last || found == loop.end); i++) {
        smg_instr_kind kind = l->k->code.items[i].kind;
        depth += (kind == SMG_I_LOOP) - (kind == SMG_I_END);
        if (kind == SMG_I_BARRIER && depth == 0) found = i;
    }
    return found;
}

/* Where the first products begin that read what is staged at `at`; -1 where it is not the loop's own product. */
static int consumer(const lowering *l, loop_range loop, int at) {
    for (int i = at + 1; i < loop.end; i++) {
        const smg_instr *in = &l->k->code.items[i];
        if (in->kind == SMG_I_LOOP) return -1;
        if (in->kind == SMG_I_MMA) return i;
    }
    return -1;
}

/* In front of the loop, in this order: the fetches of first slices, a barrier, what puts them, a barrier. */
static smg_status insert_first(lowering *l, loop_range *loop, smg_instr fetch, smg_instr put) {
    fetch.ahead = put.ahead = 0;
    fetch.note = "the first slice";
    if (loop->puts < 0) {
        loop->puts = loop->begin + 1;
        for (int i = 0; i < 2; i++) SMG_TRY(lower_insert(l->k, loop->begin++, lower_blank(SMG_I_BARRIER)));
    }
    SMG_TRY(lower_insert(l->k, loop->puts - 1, fetch));
    SMG_TRY(lower_insert(l->k, ++loop->begin - 1, put));
    loop->begin++;
    loop->puts++;
    return SMG_OK;
}

/* A slice of the step to come, fetched in front of the products that read the one of this step. It is put behind them;
 * where others follow, in front of the barrier that these bring. */
static smg_status split_ahead(lowering *l, loop_range *loop, int at, int reader) {
    smg_instr fetch = l->k->code.items[at], put = fetch;
    int last = last_products(l, loop->begin + 1, loop->end);
    int behind = last > reader ? barrier_between(l, *loop, reader, last, true)
                               : barrier_between(l, *loop, reader, loop->end, false);
    int tile = lower_new_tile(l, "next", smg_tile_kind(&l->k->tiles.items[fetch.dst]), SMG_STAGING, fetch.axes,
                              fetch.axis_count, 0);
    if (tile < 0) return SMG_MEMORY;
    give_slots(l, *loop, fetch.dst);
    put.kind = SMG_I_PUT;
    put.a = tile;
    put.expr = SMG_EXPR_NONE;
    fetch.kind = SMG_I_FETCH;
    fetch.dst = tile;
    fetch.a = l->k->code.items[loop->begin].axes[0];
    fetch.ahead = put.ahead = 1;
    fetch.note = "the next slice, on its way during the product";
    SMG_TRY(lower_insert(l->k, behind, put));
    SMG_TRY(lower_insert(l->k, reader, fetch));
    memmove(&l->k->code.items[at], &l->k->code.items[at + 1], (size_t)(--l->k->code.count - at) * sizeof fetch);
    SMG_TRY(insert_first(l, loop, fetch, put));
    loop->end = smg_kernel_loop_end(l->k, loop->begin);
    return SMG_OK;
}

/* A slice that is staged behind products is fetched in front of them, and put where it is; so does what is spilled stay
 * where it is. */
static smg_status ring_instruction(lowering *l, loop_range *loop, int *io_at) {
    int at = *io_at;
    smg_instr in = l->k->code.items[at];
    bool fills = in.kind == SMG_I_SPILL || (in.kind == SMG_I_STAGE && eligible(l, *loop, at));
    int reader = fills && inside(l, *loop, in.dst) ? consumer(l, *loop, at) : -1;
    if (reader < 0 || l->k->tiles.items[in.dst].slots > 0) return SMG_OK;
    bool behind = last_products(l, loop->begin + 1, at) >= 0;
    if (in.kind == SMG_I_STAGE && !behind) {
        SMG_TRY(split_ahead(l, loop, at, reader));
        *io_at = loop->begin; /* once more: everything has moved */
        return SMG_OK;
    }
    give_slots(l, *loop, in.dst);
    if (in.kind == SMG_I_STAGE) SMG_TRY(split(l, *loop, at));
    loop->end = smg_kernel_loop_end(l->k, loop->begin);
    *io_at += in.kind == SMG_I_STAGE;
    return SMG_OK;
}

static smg_status ring_loop(lowering *l, loop_range *loop) {
    int depth = 0;
    for (int i = loop->begin + 1; i < loop->end; i++) {
        depth += (l->k->code.items[i].kind == SMG_I_LOOP) - (l->k->code.items[i].kind == SMG_I_END);
        if (depth == 0) SMG_TRY(ring_instruction(l, loop, &i));
        if (i == loop->begin) depth = 0;
    }
    return SMG_OK;
}

static bool has_slots(const smg_kernel *k) {
    for (int t = 0; t < k->tiles.count; t++)
        if (k->tiles.items[t].slots > 0) return true;
    return false;
}

/* ---- loops ---------------------------------------------------------------------------------------- */

/* Slices staged by the loop itself; inner loops have their own turn. */
static smg_status pipeline_loop(lowering *l, loop_range *loop) {
    int depth = 0;
    for (int i = loop->begin + 1; i < loop->end; i++) {
        if (l->k->code.items[i].kind == SMG_I_LOOP) depth++;
        if (l->k->code.items[i].kind == SMG_I_END) depth--;
        if (depth > 0 || !eligible(l, *loop, i)) continue;
        int before = l->k->code.count;
        SMG_TRY(split(l, *loop, i));
        int added = l->k->code.count - before;
        if (added == 2) loop->begin++; /* the first fetch stands in front of it */
        loop->end += added;
        if (added > 0) i++; /* one instruction more in front of this one */
    }
    return SMG_OK;
}

/* ---- loads of the elementwise part ---------------------------------------------------------------- */

typedef struct early {
    lowering *l;
    loop_range loop;
    int at;   /* the instruction that loads */
    int leaf; /* one load to move; -1 */
} early;

static bool sliced_load(const lowering *l, loop_range loop, const smg_kleaf *f) {
    if (f->what != SMG_KLEAF_LOAD) return false;
    const smg_access *access = &l->k->accesses.items[f->index];
    if (access->index != SMG_EXPR_NONE || l->k->buffers.items[access->buffer].written) return false;
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] == l->k->code.items[loop.begin].axes[0]) return true;
    return false;
}

static void find_load(void *user, int leaf) {
    early *e = user;
    if (e->leaf < 0 && sliced_load(e->l, e->loop, &e->l->k->leaves.items[leaf])) e->leaf = leaf;
}

/* A tile of the load's own axes, in the order of the instruction's: all of its columns or none. */
static smg_status early_tile(const early *e, int *out_tile) {
    lowering *l = e->l;
    const smg_instr *in = &l->k->code.items[e->at];
    smg_axis_set own = lower_leaf_axes(l, e->leaf);
    smg_axis_set columns = lower_columns(l, lower_axes_of(&l->k->tiles.items[in->dst]));
    int axes[SMG_TILE_AXES], count;
    *out_tile = -1;
    if (lower_columns(l, own) != 0 && lower_columns(l, own) != columns) return SMG_OK;
    if (!lower_tile_axes(l, own, SMG_TILE_AXES, axes, &count)) return SMG_OK; /* it stays where it is */
    *out_tile = lower_new_tile(l, "soon", l->k->leaves.items[e->leaf].kind, SMG_REGISTER, axes, count, 0);
    return *out_tile < 0 ? SMG_MEMORY : SMG_OK;
}

static smg_status move_load(early *e, int place) {
    lowering *l = e->l;
    int tile;
    SMG_TRY(early_tile(e, &tile));
    if (tile < 0) return SMG_OK;
    smg_kind kind = l->k->leaves.items[e->leaf].kind;
    smg_kleaf leaf = {.what = SMG_KLEAF_TILE, .kind = kind, .index = tile};
    int number = lower_new_leaf(l, leaf, -1);
    if (number < 0) return SMG_MEMORY;
    smg_expr from = smg_expr_leaf(l->k->exprs, kind, e->leaf), to = smg_expr_leaf(l->k->exprs, kind, number);
    smg_expr changed = lower_replace(l->k->exprs, l->k->code.items[e->at].expr, from, to);
    if (from == SMG_EXPR_NONE || to == SMG_EXPR_NONE || changed == SMG_EXPR_NONE) return SMG_MEMORY;
    l->k->code.items[e->at].expr = changed;
    smg_instr set = lower_blank(SMG_I_SET);
    set.dst = tile;
    set.expr = from;
    set.note = "on its way during the product";
    e->at++;
    return lower_insert(l->k, place, set);
}

/* What follows a product in a loop and loads a slice of its own waits for it there; the load is issued in front of
 * the product instead. */
static smg_status early_loads(lowering *l, loop_range *loop) {
    int product = -1, depth = 0;
    for (int i = loop->begin + 1; i < loop->end; i++) {
        smg_instr_kind kind = l->k->code.items[i].kind;
        if (kind == SMG_I_LOOP) depth++;
        if (kind == SMG_I_END) depth--;
        if (depth > 0) continue;
        if (kind == SMG_I_MMA && product < 0) product = i;
        if (kind != SMG_I_SET || product < 0) continue;
        early e = {.l = l, .loop = *loop, .at = i, .leaf = -1};
        smg_expr_leaves(l->k->exprs, l->k->code.items[i].expr, find_load, &e);
        if (e.leaf < 0) continue;
        SMG_TRY(move_load(&e, product));
        if (e.at == i) continue;
        loop->end++;
        product++;
        i = e.at - 1; /* once more: it may load other things */
    }
    return SMG_OK;
}

smg_status lower_pipeline(lowering *l) {
    bool together = false;
    if (l->s->ahead == 0) return SMG_OK;
    for (int i = 0; i < l->k->code.count; i++) {
        if (l->k->code.items[i].kind != SMG_I_LOOP) continue;
        loop_range loop = {.begin = i, .end = smg_kernel_loop_end(l->k, i), .puts = -1};
        if (l->s->ahead > 1) together = stage_together(l, loop) || together;
        if (l->s->slots > 1) SMG_TRY(ring_loop(l, &loop));
        SMG_TRY(pipeline_loop(l, &loop));
        SMG_TRY(early_loads(l, &loop));
        i = loop.begin;
    }
    if (l->s->ahead > 1 && !together) return lower_refuse(l, "no slices are staged in turn");
    if (l->s->slots > 1 && !has_slots(l->k)) return lower_refuse(l, "no slice gets slots");
    return SMG_OK;
}
