/* Expressions of the interpreter: each instruction's expression is flattened once into a tape over its
 * distinct nodes, and the tape runs over blocks of elements, one step at a time over the whole block.
 * An indirect access brings the steps of its index along, so a tape needs no recursion. */
#include "kernel/kernel_interpret.h"

/* ---- compiling ----------------------------------------------------------------------------------- */

#define STEP_UNSEEN (-1)
#define STEP_OPEN (-2)

typedef struct compiler {
    kernel_machine *m;
    kernel_tape *tape;
    int *step_of; /* by expression: its step, STEP_UNSEEN or STEP_OPEN */
    int instr;
} compiler;

static smg_status compile(compiler *c, smg_expr expr, int *out_step);

static smg_status push_step(compiler *c, kernel_step step, int *out_step) {
    kernel_step *slot = SMG_ARRAY_PUSH(c->m->arena, &c->tape->steps);
    if (!slot) return SMG_MEMORY;
    *slot = step;
    *out_step = c->tape->steps.count - 1;
    return SMG_OK;
}

static smg_status compile_leaf(compiler *c, const smg_expr_node *node, int *out_step) {
    const smg_kernel *k = c->m->k;
    const smg_kleaf *leaf = &k->leaves.items[node->leaf];
    kernel_step step = {.kind = leaf->kind, .arg = {-1, -1, -1}, .index = leaf->index, .leaf = leaf};
    int64_t size = 0;
    switch (leaf->what) {
    case SMG_KLEAF_TILE: step.what = KERNEL_STEP_TILE; break;
    case SMG_KLEAF_IOTA: step.what = KERNEL_STEP_IOTA; break;
    case SMG_KLEAF_LOAD:
        step.what = KERNEL_STEP_LOAD;
        if (k->accesses.items[leaf->index].index != SMG_EXPR_NONE)
            SMG_TRY(compile(c, k->accesses.items[leaf->index].index, &step.arg[0]));
        break;
    case SMG_KLEAF_SIZE:
        SMG_TRY(kernel_machine_size(c->m, leaf->size, "a size in an expression", &size));
        step.what = KERNEL_STEP_CONST;
        step.value = (double)size;
        break;
    }
    return push_step(c, step, out_step);
}

static smg_status compile(compiler *c, smg_expr expr, int *out_step) {
    const smg_kernel *k = c->m->k;
    *out_step = c->step_of[expr];
    if (*out_step == STEP_OPEN)
        return smg_fail(c->m->ctx, SMG_INTERNAL,
                        "kernel '%s', instruction %d: the index of an access depends on itself", k->name, c->instr);
    if (*out_step != STEP_UNSEEN) return SMG_OK;
    c->step_of[expr] = STEP_OPEN;
    const smg_expr_node *node = smg_expr_get(k->exprs, expr);
    if (node->prim == SMG_PRIM_LEAF) {
        SMG_TRY(compile_leaf(c, node, out_step));
    } else {
        kernel_step step = {.what = KERNEL_STEP_PRIM,
                            .prim = node->prim,
                            .kind = node->kind,
                            .value = node->value,
                            .arg = {-1, -1, -1}};
        if (node->prim == SMG_PRIM_CONST) step.what = KERNEL_STEP_CONST;
        if (node->kind == SMG_KIND_FLOAT) step.value = (double)(float)node->value; /* as a tile would have it */
        step.jumps = (smg_prim_is_step(node->prim) || smg_prim_compares(node->prim)) &&
                     smg_expr_get(k->exprs, node->arg[0])->kind == SMG_KIND_FLOAT;
        for (int i = 0; i < smg_prim_arity(node->prim); i++) SMG_TRY(compile(c, node->arg[i], &step.arg[i]));
        SMG_TRY(push_step(c, step, out_step));
    }
    c->step_of[expr] = *out_step;
    return SMG_OK;
}

static smg_status compile_instr(compiler *c, const smg_instr *instr) {
    const smg_kernel *k = c->m->k;
    c->tape->index = -1;
    bool stores = instr->kind == SMG_I_STORE;
    if (!stores && instr->kind != SMG_I_SET && instr->kind != SMG_I_REDUCE && instr->kind != SMG_I_STAGE &&
        instr->kind != SMG_I_FETCH)
        return SMG_OK;
    for (int i = 0; i < smg_expr_count(k->exprs); i++) c->step_of[i] = STEP_UNSEEN;
    SMG_TRY(compile(c, instr->expr, &c->tape->result));
    if (stores && k->accesses.items[instr->a].index != SMG_EXPR_NONE)
        SMG_TRY(compile(c, k->accesses.items[instr->a].index, &c->tape->index));
    return SMG_OK;
}

smg_status kernel_tapes_compile(kernel_machine *m) {
    const smg_kernel *k = m->k;
    compiler c = {.m = m};
    m->tapes = SMG_ARENA_ARRAY(m->arena, kernel_tape, (size_t)k->code.count + 1);
    c.step_of = SMG_ARENA_ARRAY(m->arena, int, (size_t)smg_expr_count(k->exprs) + 1);
    if (!m->tapes || !c.step_of) return SMG_MEMORY;
    for (int i = 0; i < k->code.count; i++) {
        c.tape = &m->tapes[i];
        c.instr = i;
        SMG_TRY(compile_instr(&c, &k->code.items[i]));
        if (c.tape->steps.count > m->most_steps) m->most_steps = c.tape->steps.count;
    }
    return SMG_OK;
}

/* ---- coordinates and addresses --------------------------------------------------------------------- */

void kernel_space_add(const smg_kernel *k, kernel_space *s, int count, const int *axes) {
    for (int i = 0; i < count; i++) {
        s->axis[s->axis_count++] = axes[i];
        s->elements *= k->axes.items[axes[i]].tile;
    }
}

void kernel_block_mask(const kernel_machine *m, const kernel_worker *w, const kernel_space *s, int from, int to, int n,
                       bool *mask) {
    for (int slot = from; slot < to; slot++) {
        int64_t room = m->extent[s->axis[slot]] - w->base[s->axis[slot]];
        if (room >= m->k->axes.items[s->axis[slot]].tile) continue;
        const int64_t *at = w->coordinate[slot];
        for (int i = 0; i < n; i++) mask[i] = mask[i] & (at[i] < room);
    }
}

void kernel_block_begin(const kernel_machine *m, kernel_worker *w, const kernel_space *s, int64_t first, int n) {
    int64_t period = 1;
    for (int slot = s->axis_count - 1; slot >= 0; slot--) {
        int64_t tile = m->k->axes.items[s->axis[slot]].tile;
        int64_t at = first / period % tile, left = period - first % period, *out = w->coordinate[slot];
        for (int i = 0; period == 1 && i < n; at = 0)
            for (; i < n && at < tile; at++) out[i++] = at;
        for (int i = 0; period > 1 && i < n; left = period) {
            int end = left < n - i ? i + (int)left : n;
            while (i < end) out[i++] = at;
            if (++at == tile) at = 0;
        }
        period *= tile;
    }
    for (int i = 0; i < n; i++) w->inside[i] = true;
    kernel_block_mask(m, w, s, 0, s->axis_count, n, w->inside);
}

void kernel_block_clamp(const kernel_machine *m, kernel_worker *w, const kernel_space *s, const smg_tile *tile, int n) {
    for (int slot = 0; slot < s->axis_count; slot++) {
        int axis = s->axis[slot];
        if (!smg_tile_clamps(tile, axis)) continue;
        int64_t last = m->extent[axis] - 1 - w->base[axis];
        for (int i = 0; i < n; i++)
            if (w->coordinate[slot][i] > last) w->coordinate[slot][i] = last;
    }
    for (int i = 0; i < n; i++) w->inside[i] = true;
    kernel_block_mask(m, w, s, 0, s->axis_count, n, w->inside);
}

void kernel_block_put(const kernel_machine *m, const kernel_worker *w, const kernel_space *s, const smg_instr *put,
                      int n, bool *kept) {
    const smg_tile *from = &m->k->tiles.items[put->a], *to = &m->k->tiles.items[put->dst];
    for (int slot = 0; slot < s->axis_count; slot++)
        if (smg_tile_clamps(from, s->axis[slot]) && !smg_tile_clamps(to, s->axis[slot]))
            kernel_block_mask(m, w, s, slot, slot + 1, n, kept);
}

int kernel_space_slot(const kernel_space *s, int axis) {
    for (int i = 0; i < s->axis_count; i++)
        if (s->axis[i] == axis) return i;
    return -1;
}

static void block_linear(kernel_worker *w, const kernel_space *s, int64_t constant, int axis_count, const int *axis,
                         const int64_t *stride, int n) {
    for (int i = 0; i < n; i++) w->address[i] = constant;
    for (int a = 0; a < axis_count; a++) {
        int slot = kernel_space_slot(s, axis[a]);
        if (slot < 0 || stride[a] == 0) continue;
        const int64_t *at = w->coordinate[slot], step = stride[a];
        for (int i = 0; i < n; i++) w->address[i] += at[i] * step;
    }
}

static void block_view(const kernel_machine *m, kernel_worker *w, const kernel_view *v, const kernel_space *s, int n) {
    int64_t constant = v->offset;
    for (int a = 0; a < v->axis_count; a++) constant += w->base[v->axis[a]] * v->stride[a];
    block_linear(w, s, constant, v->axis_count, v->axis, v->stride, n);
    for (int i = 0; i < n; i++) w->valid[i] = true;
    for (int a = 0; a < v->axis_count; a++) {
        int slot = kernel_space_slot(s, v->axis[a]);
        if (slot >= 0) {
            kernel_block_mask(m, w, s, slot, slot + 1, n, w->valid);
        } else if (w->base[v->axis[a]] >= m->extent[v->axis[a]]) {
            for (int i = 0; i < n; i++) w->valid[i] = false;
        }
    }
}

/* A bad index counts only where the element exists; elsewhere it is clamped like on the device. */
static bool block_index(kernel_worker *w, int access, const kernel_view *v, const double *index, int n) {
    for (int i = 0; i < n; i++) {
        if (index[i] <= (double)SMG_INDEX_ABSENT) {
            w->valid[i] = false;
            continue;
        }
        bool good = index[i] >= 0 && index[i] < (double)v->index_limit;
        if (!good && w->valid[i] && w->inside[i]) {
            w->fault.what = KERNEL_FAULT_INDEX;
            w->fault.access = access;
            w->fault.index = index[i];
            return false;
        }
        if (good) w->address[i] += (int64_t)index[i] * v->index_stride;
    }
    return true;
}

bool kernel_block_address(const kernel_machine *m, kernel_worker *w, int access, const kernel_space *s,
                          const double *index, int n) {
    const kernel_view *v = &m->views[access];
    block_view(m, w, v, s, n);
    if (index && !block_index(w, access, v, index, n)) return false;
    int64_t elements = m->buffers[v->buffer].elements;
    bool outside = false;
    for (int i = 0; i < n; i++) outside |= w->valid[i] & ((uint64_t)w->address[i] >= (uint64_t)elements);
    for (int i = 0; outside && i < n; i++) {
        if (!w->valid[i] || (w->address[i] >= 0 && w->address[i] < elements)) continue;
        w->fault.what = KERNEL_FAULT_ADDRESS;
        w->fault.access = access;
        w->fault.address = w->address[i];
        return false;
    }
    return true;
}

/* ---- running --------------------------------------------------------------------------------------- */

static bool step_load(const kernel_machine *m, kernel_worker *w, const kernel_step *step, const kernel_space *s, int n,
                      double *out) {
    const double *index = step->arg[0] >= 0 ? &w->slots[(size_t)step->arg[0] * KERNEL_BLOCK] : NULL;
    if (!kernel_block_address(m, w, step->index, s, index, n)) return false;
    int buffer = m->views[step->index].buffer;
    const double *data = m->buffers[buffer].data;
    if (m->mode->loaded && m->k->buffers.items[buffer].written) m->mode->loaded(m, w, buffer, n);
    for (int i = 0; i < n; i++) out[i] = w->valid[i] ? data[w->address[i]] : 0.0;
    return true;
}

static void exchange(int64_t *a, int64_t *b, int n) {
    for (int i = 0; i < n; i++) {
        int64_t keep = a[i];
        a[i] = b[i];
        b[i] = keep;
    }
}

/* A tile at other coordinates than the elements' own, which come back afterwards. */
static bool step_picked(const kernel_machine *m, kernel_worker *w, const kernel_step *step, const kernel_space *s,
                        int n, double *out) {
    kernel_space moved = *s;
    int64_t other[SMG_LAYOUT_PICKS][KERNEL_BLOCK];
    int slots[SMG_LAYOUT_PICKS], count = step->leaf->pick_count;
    for (int p = 0; p < count; p++) {
        const smg_layout_pick *pick = &step->leaf->pick[p];
        int64_t last = m->k->axes.items[pick->axis].tile - 1;
        int from = kernel_space_slot(s, pick->from);
        slots[p] = kernel_space_slot(s, pick->axis);
        if (slots[p] < 0) slots[p] = moved.axis_count++;
        moved.axis[slots[p]] = pick->axis;
        for (int i = 0; i < n; i++)
            other[p][i] = pick->from < 0 ? pick->at : last - (from < 0 ? 0 : w->coordinate[from][i]);
    }
    for (int p = 0; p < count; p++) exchange(w->coordinate[slots[p]], other[p], n);
    w->picks = true;
    bool good = m->mode->read_tile(m, w, step->index, &moved, n, out);
    w->picks = false;
    for (int p = 0; p < count; p++) exchange(w->coordinate[slots[p]], other[p], n);
    return good;
}

static bool is_i32(double x) {
    return x >= INT32_MIN && x <= INT32_MAX;
}

/* Results of i32 operands wrap. An i64 that is none stays as it is: as an index it is refused with its number. */
static void wrap_block(const double *x, const double *y, int n, double *out) {
    for (int i = 0; i < n; i++)
        if (is_i32(x[i]) && is_i32(y[i])) out[i] = smg_wrap_i32(out[i]);
}

static void step_prim(const kernel_worker *w, const kernel_step *step, int n, double *out) {
    const double *arg[3] = {w->slots, w->slots, w->slots}; /* any readable place for those not there */
    for (int i = 0; i < 3; i++)
        if (step->arg[i] >= 0) arg[i] = &w->slots[(size_t)step->arg[i] * KERNEL_BLOCK];
    const double *x = arg[0], *y = arg[1], *z = arg[2];
    if (step->jumps) {
        double a[KERNEL_BLOCK], b[KERNEL_BLOCK];
        for (int i = 0; i < n; i++) a[i] = (double)(float)x[i];
        for (int i = 0; i < n; i++) b[i] = (double)(float)y[i];
        smg_prim_eval_each(step->prim, step->kind, a, b, b, n, out);
    } else {
        smg_prim_eval_each(step->prim, step->kind, x, y, z, n, out);
        if (step->kind == SMG_KIND_INT) wrap_block(x, step->arg[1] >= 0 ? y : x, n, out);
    }
}

const double *kernel_tape_run(const kernel_machine *m, kernel_worker *w, const kernel_tape *tape, const kernel_space *s,
                              int n) {
    for (int t = 0; t < tape->steps.count; t++) {
        const kernel_step *step = &tape->steps.items[t];
        double *out = &w->slots[(size_t)t * KERNEL_BLOCK];
        switch (step->what) {
        case KERNEL_STEP_CONST:
            for (int i = 0; i < n; i++) out[i] = step->value;
            break;
        case KERNEL_STEP_TILE:
            if (!(step->leaf->pick_count > 0 ? step_picked(m, w, step, s, n, out)
                                             : m->mode->read_tile(m, w, step->index, s, n, out)))
                return NULL;
            break;
        case KERNEL_STEP_LOAD:
            if (!step_load(m, w, step, s, n, out)) return NULL;
            break;
        case KERNEL_STEP_IOTA:
            block_view(m, w, &m->views[step->index], s, n);
            for (int i = 0; i < n; i++) out[i] = (double)w->address[i];
            break;
        case KERNEL_STEP_PRIM: step_prim(w, step, n, out); break;
        }
    }
    return &w->slots[(size_t)tape->result * KERNEL_BLOCK];
}
