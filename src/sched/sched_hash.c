/* What schedules are, as numbers: of two that are the same only one is listed, which a quick hash tells within one run;
 * choices are told apart by one that stays the same. */
#include "sched/sched_internal.h"

/* All that tells schedules of one space apart. There are no gaps between its members. */
typedef struct schedule_told {
    int64_t numbers[27];
    int64_t tile[SMG_SPACE_AXES];
    smg_axis_set sets[5], serial, form;
    int8_t more_rows[SMG_MORE_ROWS];
    int8_t left[SMG_SPACE_NODES];
} schedule_told;
_Static_assert(sizeof(schedule_told) ==
                   (27 + SMG_SPACE_AXES) * sizeof(int64_t) + 7 * sizeof(smg_axis_set) + SMG_MORE_ROWS + SMG_SPACE_NODES,
               "it is hashed as it lies in memory");

static void tell(const smg_schedule *s, schedule_told *out) {
    const smg_matrix_shape *m = s->matrix;
    *out = (schedule_told){
        .numbers = {s->row_axis,    s->col_axis, s->temporal, s->one_by_one, s->lane_rows, s->lane_cols, s->lane_depth,
                    s->subgroup,    s->vec,      s->row_run,  s->depth_near, s->ahead,     s->slots,     s->guarded,
                    s->direct,      s->across,   s->groups,   m ? m->m : 0,  m ? m->n : 0, m ? m->k : 0, s->matrix_rows,
                    s->matrix_cols, s->reuse,    s->rings,    s->alone,      s->streams,   s->rows_next},
        .sets = {s->grid, s->anew, s->inner, s->columns, s->held},
        .serial = s->serial,
        .form = (smg_axis_set)s->form,
    };
    memcpy(out->tile, s->tile, sizeof(out->tile));
    memcpy(out->more_rows, s->more_rows, sizeof(out->more_rows));
    memcpy(out->left, s->left, sizeof(out->left));
}

uint64_t smg_schedule_hash(uint64_t seed, const smg_schedule *s) {
    schedule_told t;
    tell(s, &t);
    uint64_t hash = smg_hash_bytes(seed, t.numbers, sizeof(t.numbers));
    hash = smg_hash_bytes(smg_hash_bytes(hash, t.sets, sizeof(t.sets)), t.more_rows, sizeof(t.more_rows));
    if (t.serial != 0) hash = smg_hash_u64(hash, t.serial);
    if (t.form != 0) hash = smg_hash_u64(hash, t.form);
    if (s->band != 0) hash = smg_hash_u64(hash, (uint64_t)s->band);
    return smg_hash_bytes(smg_hash_bytes(hash, t.tile, sizeof(t.tile)), t.left, sizeof(t.left));
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

/* Within one run: what all schedules of a space share tells nothing. Lanes, tiles, axes: what those of one shape of
 * blocks have in common. */
uint64_t sched_shape_hash(const smg_schedule *s) {
    const smg_matrix_shape *m = s->matrix;
    const uint64_t flags = (uint64_t)s->one_by_one | (uint64_t)s->depth_near << 1 | (uint64_t)s->guarded << 2 |
                           (uint64_t)s->direct << 3 | (uint64_t)s->across << 4 | (uint64_t)s->groups << 5 |
                           (uint64_t)s->alone << 6 | (uint64_t)s->streams << 7 | (uint64_t)s->rows_next << 8;
    const int32_t numbers[] = {s->row_axis,   s->col_axis, s->temporal,    s->lane_rows,  s->lane_cols,
                               s->lane_depth, s->subgroup, (int)s->form,   m ? m->m : 0,  m ? m->n : 0,
                               m ? m->k : 0,  s->rings,    s->matrix_rows, s->matrix_cols};
    const smg_axis_set sets[] = {s->grid, s->anew, s->inner, s->columns, s->held, s->serial};
    uint64_t hash = smg_hash_bytes(flags, numbers, sizeof(numbers));
    hash = smg_hash_bytes(hash, sets, sizeof(sets));
    hash = smg_hash_bytes(hash, s->tile, (size_t)s->space->axes.count * sizeof(s->tile[0]));
    hash = smg_hash_bytes(hash, s->more_rows, sizeof(s->more_rows));
    return smg_hash_bytes(hash, s->left, (size_t)s->space->nodes.count);
}

/* And what tells those apart: runs, what is fetched ahead, whether tiles take turns. */
static uint64_t whole_hash(uint64_t shape, const smg_schedule *s) {
    return smg_hash_finish(smg_hash_mix(smg_hash_mix(shape, (uint64_t)s->vec << 32 | (uint64_t)s->row_run),
                                        (uint64_t)s->ahead << 32 | (uint64_t)s->slots << 1 | (uint64_t)s->reuse));
}

smg_status sched_is_new(sched_seen *seen, uint64_t shape, const smg_schedule *s, smg_arena *arena, bool *out_is) {
    uint64_t hash = whole_hash(shape, s) | 1; /* 0 is a free place */
    if (2 * seen->count >= seen->room) SMG_TRY(make_room(seen, arena));
    uint64_t *place = place_of(seen, hash);
    *out_is = *place != hash;
    *place = hash;
    seen->count += *out_is;
    return SMG_OK;
}
