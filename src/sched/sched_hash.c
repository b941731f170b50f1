/* What schedules are, as numbers: of two that are the same only one is listed, and choices are told apart by it. */
#include "sched/sched_internal.h"

uint64_t smg_schedule_hash(uint64_t seed, const smg_schedule *s) {
    const smg_matrix_shape *m = s->matrix;
    const int64_t numbers[] = {s->row_axis,   s->col_axis,  s->temporal,    s->one_by_one,  s->lane_rows,  s->lane_cols,
                               s->lane_depth, s->subgroup,  s->vec,         s->row_run,     s->depth_near, s->ahead,
                               s->slots,      s->guarded,   s->direct,      s->across,      s->groups,     m ? m->m : 0,
                               m ? m->n : 0,  m ? m->k : 0, s->matrix_rows, s->matrix_cols, s->reuse,      s->rings,
                               s->alone,      s->streams,   s->rows_next};
    const smg_axis_set sets[] = {s->grid, s->anew, s->inner, s->columns, s->held};
    uint64_t hash = smg_hash_bytes(seed, numbers, sizeof(numbers));
    hash = smg_hash_bytes(smg_hash_bytes(hash, sets, sizeof(sets)), s->more_rows, sizeof(s->more_rows));
    if (s->serial != 0) hash = smg_hash_u64(hash, s->serial);
    if (s->linear) hash = smg_hash_u64(hash, s->linear);
    return smg_hash_bytes(smg_hash_bytes(hash, s->tile, sizeof(s->tile)), s->left, sizeof(s->left));
}

static uint64_t *place_of(const sched_seen *seen, uint64_t hash) {
    int at = (int)(hash & (uint64_t)(seen->room - 1));
    while (seen->hash[at] != 0 && seen->hash[at] != hash) at = (at + 1) & (seen->room - 1);
    return &seen->hash[at];
}

#define FIRST_ROOM 256

static smg_status make_room(sched_seen *seen, smg_arena *arena) {
    const sched_seen before = *seen;
    seen->room = before.room > 0 ? 4 * before.room : FIRST_ROOM;
    seen->hash = SMG_ARENA_ARRAY(arena, uint64_t, (size_t)seen->room);
    if (seen->hash == NULL) return SMG_MEMORY;
    for (int i = 0; i < before.room; i++)
        if (before.hash[i] != 0) *place_of(seen, before.hash[i]) = before.hash[i];
    return SMG_OK;
}

smg_status sched_is_new(sched_seen *seen, const smg_schedule *s, smg_arena *arena, bool *out_is) {
    uint64_t hash = smg_schedule_hash(SMG_HASH_SEED, s) | 1; /* 0 is a free place */
    if (2 * seen->count >= seen->room) SMG_TRY(make_room(seen, arena));
    uint64_t *place = place_of(seen, hash);
    *out_is = *place != hash;
    *place = hash;
    seen->count += *out_is;
    return SMG_OK;
}
