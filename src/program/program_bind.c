/* program_bind.c: sizes, and the recordings that serve them.
 *
 * The recordings of the last few tuples of sizes stay, and those of ranges: sizes that one of them serves are bound
 * without an allocation. A range may take several run lists: what all of them need is made when its first sizes are
 * bound, so that no later ones of the range wait for it. */
#include "program/program_private.h"

void smg_bound_drop(smg_program *p, smg_bound *bound) {
    smg_program_drop_parts(bound);
    smg_vk_buffer_destroy(bound->parameters);
    bound->parameters = NULL;
    bound->used = false;
    if (p->bound == bound) p->bound = NULL;
}

smg_status smg_program_set_range(smg_program *p, int symbol, int64_t low, int64_t high) {
    if (symbol < 0 || symbol >= p->symbol_count) {
        return smg_fail(p->ctx, SMG_INVALID, "symbol %d of %d", symbol, p->symbol_count);
    }
    const char *name = smg_size_symbol_name(p->bundle->sizes, symbol);
    int64_t max = smg_size_symbol_max(p->bundle->sizes, symbol);
    bool none = low == 0 && high == 0;
    if (low > high) {
        return smg_fail(p->ctx, SMG_INVALID, "%s: the range [%lld, %lld] ends below its start", name, (long long)low,
                        (long long)high);
    }
    if (!none && (low < 1 || high > max)) {
        return smg_fail(p->ctx, SMG_INVALID, "%s: the range [%lld, %lld] must lie in [1, %lld]", name, (long long)low,
                        (long long)high, (long long)max);
    }
    p->range_low[symbol] = low;
    p->range_high[symbol] = high;
    return SMG_OK;
}

void smg_program_give(smg_program *p, int buffer, const smg_given *given) {
    smg_program_forget_given(p, buffer);
    p->given[buffer] = (smg_given){0};
    if (given == NULL || given->memory == NULL) return;
    p->given[buffer] = *given;
    p->given[buffer].id = smg_vk_buffer_id(given->memory);
}

/* Is what was given enough? Kernels may touch what fills up 16 bytes. */
static smg_status check_given(smg_program *p, const int64_t *values) {
    for (int i = 0; i < p->known_buffers; i++) {
        const smg_bbuffer *b = &p->bundle->buffers.items[i];
        int64_t elements = 0, bytes = 0;
        if (p->given[i].memory == NULL) continue;
        if (!smg_size_eval(p->bundle->sizes, b->elements, values, &elements) || elements < 0 ||
            !smg_mul_i64(elements, smg_storage_device_bytes(b->storage), &bytes) || bytes > INT64_MAX - 16)
            return smg_fail(p->ctx, SMG_INVALID, "'%s' has too many elements at these sizes", b->name);
        if ((bytes + 15) / 16 * 16 <= p->given[i].bytes) continue;
        return smg_fail(p->ctx, SMG_INVALID, "'%s' has %lld elements at these sizes, its tensor has room for %lld",
                        b->name, (long long)elements,
                        (long long)(p->given[i].bytes / smg_storage_device_bytes(b->storage)));
    }
    return SMG_OK;
}

static smg_status check_values(smg_program *p, const int64_t *values) {
    for (int i = 0; i < p->symbol_count; i++) {
        const char *name = smg_size_symbol_name(p->bundle->sizes, i);
        int64_t max = smg_size_symbol_max(p->bundle->sizes, i);
        if (values[i] < 1 || values[i] > max) {
            return smg_fail(p->ctx, SMG_INVALID, "%s is %lld, it must be in [1, %lld]", name, (long long)values[i],
                            (long long)max);
        }
        if (p->range_low[i] > 0 && (values[i] < p->range_low[i] || values[i] > p->range_high[i])) {
            return smg_fail(p->ctx, SMG_INVALID, "%s is %lld, outside the range [%lld, %lld] that was set for it", name,
                            (long long)values[i], (long long)p->range_low[i], (long long)p->range_high[i]);
        }
    }
    return SMG_OK;
}

/* p->low and p->high: the ranges, and the values of what has none. */
static void find_ends(smg_program *p, const int64_t *values) {
    for (int i = 0; i < p->symbol_count; i++) {
        bool ranged = p->range_low[i] > 0 && !p->single && !smg_program_is_limited(p); /* slices are those of sizes */
        p->low[i] = ranged ? p->range_low[i] : values[i];
        p->high[i] = ranged ? p->range_high[i] : values[i];
    }
}

static void leave_range(smg_program *p, const int64_t *values) {
    memcpy(p->low, values, (size_t)p->symbol_count * sizeof(*values));
    memcpy(p->high, values, (size_t)p->symbol_count * sizeof(*values));
}

/* Is a step to be cut at these sizes, which a recording of the range does not do? Mostly its largest sizes tell. */
static bool is_cut(const smg_program *p, smg_bound *range, const int64_t *values) {
    if (range->parameters == NULL) return false;
    if (range->whole_pace != p->pace) range->whole = !smg_program_cuts(p, range->variant, range->high);
    range->whole_pace = p->pace;
    return !range->whole && smg_program_cuts(p, range->variant, values);
}

static bool can_be_had(const smg_program *p, int variant) {
    return p->bundle->variants.items[variant].made || p->options.make_variant != NULL;
}

static bool is_possible(const smg_program *p, int variant) {
    return can_be_had(p, variant) && !p->dropped[variant];
}

/* Are all values of the run list small enough for one binding, as far as is known? */
static bool fits_bindings(const smg_program *p, int variant, const int64_t *values) {
    const int64_t *beyond = p->beyond[variant];
    bool smaller = beyond == NULL;
    for (int i = 0; i < p->symbol_count && !smaller; i++) smaller = values[i] < beyond[i];
    return smaller;
}

/* The run list for these sizes; 0 instead of one that nobody can make, or the driver does not build. In place of one
 * with values that no binding reaches the first one that has none. */
static int choose_variant(const smg_program *p, const int64_t *values) {
    int variant = smg_bundle_choose(p->bundle, values);
    if (!is_possible(p, variant)) variant = 0;
    for (int v = 0; !fits_bindings(p, variant, values) && v < p->bundle->variants.count; v++)
        if (is_possible(p, v) && fits_bindings(p, v, values)) variant = v;
    return variant;
}

/* After a failure: a run list has a value that no binding reaches, which another one may not have. */
static bool goes_around(smg_program *p, const int64_t *values) {
    int variant = p->oversized;
    p->oversized = -1;
    if (variant < 0 || p->symbol_count == 0 || !fits_bindings(p, variant, values)) return false;
    int64_t *beyond = SMG_ARENA_ARRAY(p->arena, int64_t, (size_t)p->symbol_count);
    if (beyond == NULL) return false;
    memcpy(beyond, values, (size_t)p->symbol_count * sizeof(*values));
    p->beyond[variant] = beyond;
    if (!fits_bindings(p, choose_variant(p, values), values)) return false;
    smg_log(p->ctx, SMG_LOG_INFO, "%s: kernels that were planned for other sizes serve", smg_context_error(p->ctx));
    return true;
}

static bool same_given(const smg_program *p, const smg_bound *bound) {
    for (int i = 0; i < p->known_buffers; i++) {
        const smg_given *a = &bound->given[i], *b = &p->given[i];
        if (a->id != b->id || a->offset != b->offset || a->bytes != b->bytes) return false;
    }
    return true;
}

static smg_bound *find_bound(smg_program *p, const int64_t *values) {
    int variant = choose_variant(p, values);
    size_t bytes = (size_t)p->symbol_count * sizeof(*values);
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) {
        smg_bound *bound = &p->cache[i];
        if (bound->used && bound->profile == p->profile && bound->runs == p->runs && bound->variant == variant &&
            memcmp(bound->low, p->low, bytes) == 0 && memcmp(bound->high, p->high, bytes) == 0 &&
            same_given(p, bound)) {
            return bound;
        }
    }
    return NULL;
}

static smg_bound *oldest_bound(smg_program *p) {
    smg_bound *oldest = &p->cache[0];
    for (int i = 0; i < SMG_PROGRAM_CACHED; i++) {
        smg_bound *bound = &p->cache[i];
        if (!bound->used) return bound;
        if (bound->last_use < oldest->last_use) oldest = bound;
    }
    return oldest;
}

static bool is_among(const int *variants, int count, int variant) {
    for (int i = 0; i < count; i++)
        if (variants[i] == variant) return true;
    return false;
}

/* The run lists for these sizes and the rest of their range, made now where they can be. */
static smg_status make_lists(smg_program *p, const int64_t *values, int variants[SMG_PROGRAM_CACHED], int *out_count) {
    bool range = smg_program_moves(p, p->low, p->high);
    int count = 0;
    variants[count++] = choose_variant(p, values);
    for (int v = 0; range && v < p->bundle->variants.count && count < SMG_PROGRAM_CACHED; v++) {
        if (!can_be_had(p, v) || !smg_bundle_meets(p->bundle, v, p->low, p->high)) continue;
        int served = p->dropped[v] ? 0 : v;
        if (!is_among(variants, count, served)) variants[count++] = served;
    }
    for (int i = 0; i < count; i++) {
        if (p->bundle->variants.items[variants[i]].made) continue;
        p->stale = true;
        SMG_TRY(p->options.make_variant(p->options.variant_user, variants[i]));
    }
    if (p->stale) SMG_TRY(smg_program_extend(p)); /* also what an earlier bind could not finish */
    for (int i = 0; i < count; i++) {
        if (!p->bundle->variants.items[variants[i]].made) variants[i] = 0;
    }
    *out_count = count;
    return SMG_OK;
}

/* Replaces the oldest. */
static smg_bound *begin_bound(smg_program *p, int variant) {
    size_t bytes = (size_t)p->symbol_count * sizeof(*p->low);
    smg_bound *bound = oldest_bound(p);
    smg_bound_drop(p, bound);
    memcpy(bound->low, p->low, bytes);
    memcpy(bound->high, p->high, bytes);
    memcpy(bound->given, p->given, (size_t)p->known_buffers * sizeof(*p->given));
    bound->settled = bound->paced = bound->measured = bound->again = false;
    bound->tries = 0;
    bound->whole_pace = -1;
    bound->profile = p->profile;
    bound->runs = p->runs;
    bound->variant = variant;
    bound->last_use = ++p->clock;
    bound->used = true; /* so that the next one takes another place */
    return bound;
}

static smg_status make_bounds(smg_program *p, const int64_t *values) {
    int variants[SMG_PROGRAM_CACHED];
    smg_bound *bounds[SMG_PROGRAM_CACHED];
    int count = 0;
    SMG_TRY(make_lists(p, values, variants, &count));
    if (smg_program_moves(p, p->low, p->high) && smg_program_cuts(p, variants[0], values)) {
        leave_range(p, values);
        count = 1;
        if (find_bound(p, values) != NULL) return SMG_OK;
    }
    for (int i = 0; i < count; i++) bounds[i] = begin_bound(p, variants[i]);
    smg_status status = smg_program_place_bounds(p, bounds, count);
    for (int i = 0; i < count && status == SMG_OK; i++) status = smg_program_record_run(p, bounds[i]);
    for (int i = 0; i < count && status == SMG_OK; i++) status = smg_program_make_crossings(p, bounds[i]);
    for (int i = 0; i < count; i++) {
        bounds[i]->used = true;
        if (status != SMG_OK) smg_bound_drop(p, bounds[i]);
    }
    return status;
}

static smg_status bind_sizes(smg_program *p, const int64_t *values) {
    if (p->in_flight) return smg_fail(p->ctx, SMG_INVALID, "sizes are bound while a run is in flight");
    SMG_TRY(check_values(p, values));
    SMG_TRY(smg_program_place_states(p, values));
    SMG_TRY(check_given(p, values));
    find_ends(p, values);
    smg_bound *bound = find_bound(p, values);
    if (bound != NULL && is_cut(p, bound, values)) {
        leave_range(p, values);
        bound = find_bound(p, values);
    }
    if (bound == NULL) {
        p->bound = NULL;
        SMG_TRY(make_bounds(p, values));
        bound = find_bound(p, values);
        if (bound == NULL) return smg_fail(p->ctx, SMG_INTERNAL, "sizes were recorded and are not found");
    }
    if (bound->again) {
        smg_status status = smg_program_record_run(p, bound);
        if (status != SMG_OK) {
            smg_bound_drop(p, bound);
            return status;
        }
    }
    bool same = bound->settled && memcmp(bound->values, values, (size_t)p->symbol_count * sizeof(*values)) == 0;
    if (bound != p->bound || !same) {
        p->bound = NULL;
        if (!same) SMG_TRY(smg_program_put_values(p, bound, values));
        for (int i = 0; i < p->known_buffers; i++) p->written[i] = bound->given[i].memory != NULL;
        smg_program_forget_crossings(p);
        p->ran = false;
    }
    p->bound = bound;
    bound->last_use = ++p->clock;
    return SMG_OK;
}

smg_status smg_program_bind_sizes(smg_program *p, const int64_t *values) {
    p->refused = p->oversized = -1;
    smg_status status = bind_sizes(p, values);
    while (status != SMG_OK && (smg_program_do_without(p) || goes_around(p, values))) {
        smg_context_clear_error(p->ctx);
        status = bind_sizes(p, values);
    }
    return status;
}

bool smg_program_is_bound(const smg_program *p) {
    return p->bound != NULL;
}

bool smg_program_ends(const smg_program *p, const int64_t **out_low, const int64_t **out_high) {
    if (p->bound == NULL) return false;
    *out_low = p->bound->low;
    *out_high = p->bound->high;
    return true;
}
