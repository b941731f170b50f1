/* Groups that are no neighbours in the order, or parts of two groups, as one: siblings of one input that stand apart,
 * what reads what the other has made. Tried are two groups that a tensor ties, which both read or the one makes; of
 * each the whole or a part that begins or ends with those who have to do with that tensor.
 *
 * One kernel they may be where no path leaves them and returns: no group between hangs on the first and is needed by
 * the second. Groups between that hang on the first come behind both, the others before. */
#include <math.h>

#include "plan/plan_moves.h"

#define MOST_TIES 4 /* tensors of two groups that parts are made for */

/* Places of a group that have to do with a tensor. */
typedef struct tie {
    span one, other;
} tie;

typedef struct joiner {
    mover *m;
    int a;
    span one;                       /* of group a: what is joined */
    int stamp;                      /* of group a, where it is as it is now */
    int *reader;                    /* per node: the stamp of who has to do with it */
    span *readers;                  /* then its places */
    int *group;                     /* per place */
    int marked;                     /* groups up to here are marked for `one` */
    bool *behind;                   /* per group: it hangs on `one` */
    bool rest_behind, front_behind; /* what group a has behind `one`; what b has before `other` */
} joiner;

/* Two groups, of each a part. */
typedef struct pair {
    int a, b;
    span one, other;
    const segment *joint, *front[2], *rest[2]; /* what each group has before and behind its part */
    double cost, seconds;                      /* of all that the two become */
} pair;

enum { PARTS = 4, MOST_VARIANTS = MOST_TIES * PARTS * PARTS };

/* What came of two groups. */
typedef struct outcome {
    pair best;                                     /* joint: NULL: they stay apart */
    span one[MOST_VARIANTS], other[MOST_VARIANTS]; /* that were looked at */
    int variants;
    bool tied, convex, priced; /* some of these are no neighbours; one may be one kernel; has a price as one */
} outcome;

static int length(span s) {
    return s.to - s.from;
}

static span before_of(span whole, span part) {
    return (span){whole.from, part.from};
}

static span behind_of(span whole, span part) {
    return (span){part.to, whole.to};
}

/* ---- what ties two groups ------------------------------------------------------------------------- */

static void mark_one(joiner *j, smg_node_id id, int place) {
    if (smg_graph_node(j->m->p->g, id)->rank == 0) return; /* a number: nothing to share */
    if (j->reader[id] != j->stamp) j->readers[id] = (span){place, place + 1};
    j->reader[id] = j->stamp;
    j->readers[id].to = place + 1;
}

static void mark_group(joiner *j) {
    const mover *m = j->m;
    span whole = moves_group(m, j->a);
    for (int i = whole.from; i < whole.to; i++) {
        smg_node_id id = m->p->order[i];
        for (int k = m->first[id]; k < m->first[id + 1]; k++)
            if (!moves_is_in(whole, m->p->place[m->sources.items[k]])) mark_one(j, m->sources.items[k], i);
        mark_one(j, id, i);
    }
}

/* Of the tensors that tie b to the group the first few. */
static int find_ties(const joiner *j, int b, tie *out) {
    const mover *m = j->m;
    span whole = moves_group(m, b);
    smg_node_id found[MOST_TIES];
    int count = 0;
    for (int i = whole.from; i < whole.to; i++) {
        smg_node_id id = m->p->order[i];
        for (int k = m->first[id]; k < m->first[id + 1]; k++) {
            smg_node_id source = m->sources.items[k];
            int at = 0;
            if (j->reader[source] != j->stamp) continue;
            while (at < count && found[at] != source) at++;
            if (at == MOST_TIES) continue;
            if (at == count) {
                found[count++] = source;
                out[at] = (tie){.one = j->readers[source], .other = {i, i + 1}};
            }
            out[at].other.to = i + 1;
        }
    }
    return count;
}

/* With the maps behind it that take its place. */
static span extend(const mover *m, span whole, span part) {
    for (bool goes_on = true; goes_on && part.to < whole.to;) {
        smg_node_id id = m->p->order[part.to];
        goes_on = false;
        for (int k = m->first[id]; k < m->first[id + 1]; k++)
            goes_on = goes_on || moves_is_in(part, m->p->place[m->sources.items[k]]);
        goes_on = goes_on && smg_node_class(smg_graph_node(m->p->g, id)) == SMG_CLASS_MAP;
        part.to += goes_on;
    }
    return part;
}

/* ---- may they be one ------------------------------------------------------------------------------- */

/* Does what is at that place hang on `one`? It is another one's than group b's, or in front of its part. */
static bool is_behind(const joiner *j, int place, int b) {
    int group = j->group[place];
    if (group == b) return j->front_behind;
    return group == j->a ? place >= j->one.to && j->rest_behind : group > j->a && j->behind[group];
}

/* Do these nodes of group b hang on `one`: where they read it, or else by what is not among them? */
static bool hangs_on(const joiner *j, span nodes, int b, bool reading) {
    const mover *m = j->m;
    for (int i = nodes.from; i < nodes.to; i++) {
        smg_node_id id = m->p->order[i];
        for (int k = m->first[id]; k < m->first[id + 1]; k++) {
            int place = m->p->place[m->sources.items[k]];
            if (place < 0 || moves_is_in(nodes, place)) continue;
            if (moves_is_in(j->one, place) ? reading : is_behind(j, place, b)) return true;
        }
    }
    return false;
}

/* Group by group, up to the one before b. */
static void mark_behind(joiner *j, span one, int b) {
    const mover *m = j->m;
    if (j->one.from != one.from || j->one.to != one.to) j->marked = j->a;
    j->one = one;
    if (j->marked == j->a) j->rest_behind = hangs_on(j, behind_of(moves_group(m, j->a), one), -1, true);
    while (j->marked + 1 < b) {
        int g = ++j->marked;
        j->behind[g] = hangs_on(j, moves_group(m, g), -1, true);
    }
}

static bool is_convex(joiner *j, const pair *c) {
    mark_behind(j, c->one, c->b);
    j->front_behind = hangs_on(j, before_of(moves_group(j->m, c->b), c->other), -1, true);
    return !hangs_on(j, c->other, c->b, false);
}

static bool is_within(const mover *m, const pair *c) {
    int nodes = c->one.to - c->one.from + c->other.to - c->other.from;
    int products = plan_products(m->p, c->one.from, c->one.to) + plan_products(m->p, c->other.from, c->other.to);
    return nodes <= plan_longest(m->p) && products <= plan_most_products(m->p);
}

/* ---- what it costs --------------------------------------------------------------------------------- */

/* A part that stays alone, in the order at hand; none costs nothing. All together are of no use beyond the limit. */
static smg_status add_piece(mover *m, span s, double limit, const segment **out_segment, pair *io) {
    bool allowed;
    *out_segment = NULL;
    if (s.from == s.to || !(io->cost < limit)) return SMG_OK;
    SMG_TRY(plan_segment_within(m->p, s.from, s.to, limit - io->cost, out_segment));
    SMG_TRY(moves_is_allowed(m, m->p, s, *out_segment, &allowed));
    io->cost += allowed ? plan_cost_of(m->p, *out_segment) : HUGE_VAL;
    io->seconds += (*out_segment)->price.seconds;
    return SMG_OK;
}

/* The short ones first: one that has no kernel, or is too dear, spares the search for those of the long ones. */
static smg_status add_pieces(mover *m, double limit, pair *io) {
    span a = moves_group(m, io->a), b = moves_group(m, io->b);
    const span piece[] = {before_of(a, io->one), behind_of(a, io->one), before_of(b, io->other),
                          behind_of(b, io->other)};
    const segment **made[] = {&io->front[0], &io->rest[0], &io->front[1], &io->rest[1]};
    bool done[SMG_COUNT_OF(piece)] = {false};
    io->cost = io->seconds = 0;
    for (size_t count = 0; count < SMG_COUNT_OF(piece); count++) {
        size_t next = SMG_COUNT_OF(piece);
        for (size_t i = 0; i < SMG_COUNT_OF(piece); i++)
            if (!done[i] && (next == SMG_COUNT_OF(piece) || length(piece[i]) < length(piece[next]))) next = i;
        done[next] = true;
        SMG_TRY(add_piece(m, piece[next], limit, made[next], io));
    }
    return SMG_OK;
}

static void append(mover *m, span s, const segment *made) {
    moves_append(m, m->p->order + s.from, s.to - s.from, made);
}

static void append_groups(mover *m, int from, int to, const bool *behind, bool which) {
    for (int g = from; g < to; g++)
        if (behind == NULL || behind[g] == which) append(m, moves_group(m, g), m->made[g]);
}

/* The order with the two parts side by side, as a trial; the places of both. */
static span arrange(joiner *j, const pair *c) {
    mover *m = j->m;
    span a = moves_group(m, c->a), b = moves_group(m, c->b);
    smg_node_id both[2 * PLAN_MAX_SEGMENT];
    int one = c->one.to - c->one.from, other = c->other.to - c->other.from;
    memcpy(both, m->p->order + c->one.from, (size_t)one * sizeof *both);
    memcpy(both + one, m->p->order + c->other.from, (size_t)other * sizeof *both);
    moves_begin(m);
    append_groups(m, 0, c->a, NULL, false);
    append(m, before_of(a, c->one), c->front[0]);
    if (!j->rest_behind) append(m, behind_of(a, c->one), c->rest[0]);
    append_groups(m, c->a + 1, c->b, j->behind, false);
    if (!j->front_behind) append(m, before_of(b, c->other), c->front[1]);
    int from = m->trial.count;
    moves_append(m, both, one + other, c->joint);
    if (j->rest_behind) append(m, behind_of(a, c->one), c->rest[0]);
    append_groups(m, c->a + 1, c->b, j->behind, true);
    if (j->front_behind) append(m, before_of(b, c->other), c->front[1]);
    append(m, behind_of(b, c->other), c->rest[1]);
    append_groups(m, c->b + 1, m->count, NULL, false);
    moves_end(m);
    return (span){from, from + one + other};
}

static double apart_of(const mover *m, const pair *c) {
    return plan_cost_of(m->p, m->made[c->a]) + plan_cost_of(m->p, m->made[c->b]);
}

static double seconds_apart(const mover *m, const pair *c) {
    return m->made[c->a]->price.seconds + m->made[c->b]->price.seconds;
}

static bool reads(const mover *m, span nodes, span other) {
    for (int i = nodes.from; i < nodes.to; i++) {
        smg_node_id id = m->p->order[i];
        for (int k = m->first[id]; k < m->first[id + 1]; k++)
            if (moves_is_in(other, m->p->place[m->sources.items[k]])) return true;
    }
    return false;
}

/* Of the two parts as one, at least: who only reads the same takes no less time than the dearer of them alone. More
 * than `most` may come out as `most`. */
static smg_status find_least(mover *m, const pair *c, double most, double *out_cost) {
    const segment *one, *other;
    *out_cost = 0;
    if (reads(m, c->other, c->one)) return SMG_OK;
    SMG_TRY(plan_segment_within(m->p, c->one.from, c->one.to, most, &one));
    SMG_TRY(plan_segment_within(m->p, c->other.from, c->other.to, most, &other));
    if (one->possible && other->possible) *out_cost = fmax(plan_cost_of(m->p, one), plan_cost_of(m->p, other));
    if (one->least > 0 || other->least > 0) *out_cost = most;
    return SMG_OK;
}

static bool is_known(outcome *o, span one, span other) {
    for (int i = 0; i < o->variants; i++)
        if (o->one[i].from == one.from && o->one[i].to == one.to && o->other[i].from == other.from &&
            o->other[i].to == other.to)
            return true;
    o->one[o->variants] = one;
    o->other[o->variants++] = other;
    return false;
}

/* Two parts; the cheapest of all is kept. */
static smg_status try_parts(joiner *j, pair *c, outcome *io) {
    mover *m = j->m;
    double least, limit = io->best.joint != NULL ? io->best.cost : apart_of(m, c);
    bool allowed;
    bool neighbours = c->one.to == c->other.from; /* then the order has them as a segment */
    if (is_known(io, c->one, c->other) || neighbours || !is_within(m, c)) return SMG_OK;
    io->tied = true;
    if (!is_convex(j, c)) return SMG_OK;
    io->convex = true;
    SMG_TRY(add_pieces(m, limit, c));
    if (c->cost >= limit) return SMG_OK;
    SMG_TRY(find_least(m, c, limit - c->cost, &least));
    if (c->cost + least >= limit || !moves_may_price(m)) return SMG_OK;
    io->priced = true;
    span both = arrange(j, c);
    SMG_TRY(plan_segment_within(&m->trial, both.from, both.to, limit - c->cost, &c->joint));
    SMG_TRY(moves_is_allowed(m, &m->trial, both, c->joint, &allowed));
    if (!allowed) return SMG_OK;
    c->cost += plan_cost_of(m->p, c->joint);
    c->seconds += c->joint->price.seconds;
    if (moves_is_cheaper(m, c->cost - limit, c->seconds - seconds_apart(m, c))) io->best = *c;
    return SMG_OK;
}

/* The whole; up to, from, or only those who have to do with the tensor, with the maps that take their place. */
static span part_of(const mover *m, span whole, span readers, int which) {
    span narrow = extend(m, whole, readers);
    return (span){which & 1 ? narrow.from : whole.from, which & 2 ? narrow.to : whole.to};
}

static smg_status try_pair(joiner *j, int b, outcome *out) {
    const mover *m = j->m;
    tie ties[MOST_TIES];
    int count = find_ties(j, b, ties);
    out->best.joint = NULL;
    out->variants = 0;
    out->tied = out->convex = out->priced = false;
    if (m->made[j->a]->body > 0 || m->made[b]->body > 0) return SMG_OK; /* equal bodies stay among themselves */
    for (int t = 0; t < count; t++) {
        for (int i = 0; i < PARTS * PARTS; i++) {
            pair c = {.a = j->a, .b = b};
            c.one = part_of(m, moves_group(m, j->a), ties[t].one, i / PARTS);
            c.other = part_of(m, moves_group(m, b), ties[t].other, i % PARTS);
            SMG_TRY(try_parts(j, &c, out));
        }
    }
    return SMG_OK;
}

/* ---- all pairs ------------------------------------------------------------------------------------- */

static void count_outcome(smg_moves *moves, const outcome *o) {
    moves->pairs += o->tied;
    moves->between += o->tied && !o->convex;
    moves->priced += o->priced;
}

static smg_status note(mover *m, const pair *c) {
    smg_text text;
    smg_text_init(&text, m->p->ctx);
    smg_text_addf(&text, "%d + %d operations, from %s", c->one.to - c->one.from, c->other.to - c->other.from,
                  smg_graph_describe(m->p->g, m->p->order[c->one.from]));
    smg_text_addf(&text, " and %s on", smg_graph_describe(m->p->g, m->p->order[c->other.from]));
    smg_status status = smg_text_status(&text);
    if (status == SMG_OK) status = moves_note(m, smg_text_cstr(&text), c->seconds, seconds_apart(m, c));
    smg_text_free(&text);
    return status;
}

static smg_status take(joiner *j, const pair *c) {
    SMG_TRY(note(j->m, c));
    is_convex(j, c);
    arrange(j, c);
    return moves_take(j->m);
}

static void begin_group(joiner *j) {
    j->one = (span){-1, -1};
    j->marked = j->a;
    j->stamp++;
    mark_group(j);
}

static void number_places(joiner *j) {
    for (int g = 0; g < j->m->count; g++) {
        span s = moves_group(j->m, g);
        for (int i = s.from; i < s.to; i++) j->group[i] = g;
    }
}

/* What `a` is joined with makes another group of it, which is looked at anew. */
static smg_status join_group(joiner *j, outcome *o) {
    mover *m = j->m;
    begin_group(j);
    for (int b = j->a + 1; b < m->count && b - j->a <= SMG_PLAN_FARTHEST + 1; b++) {
        SMG_TRY(try_pair(j, b, o));
        count_outcome(m->moves, o);
        if (o->best.joint == NULL) continue;
        SMG_TRY(take(j, &o->best));
        number_places(j);
        begin_group(j);
        b = j->a;
    }
    return SMG_OK;
}

smg_status moves_join(mover *m) {
    size_t nodes = (size_t)m->p->g->nodes.count + 1;
    joiner j = {.m = m};
    outcome *o = SMG_ARENA_NEW(m->arena, outcome);
    j.reader = SMG_ARENA_ARRAY(m->arena, int, nodes);
    j.readers = SMG_ARENA_ARRAY(m->arena, span, nodes);
    j.group = SMG_ARENA_ARRAY(m->arena, int, nodes);
    j.behind = SMG_ARENA_ARRAY(m->arena, bool, nodes);
    if (o == NULL || j.reader == NULL || j.readers == NULL || j.group == NULL || j.behind == NULL) return SMG_MEMORY;
    number_places(&j);
    for (j.a = 0; j.a < m->count; j.a++) SMG_TRY(join_group(&j, o));
    return SMG_OK;
}
