/* The per-lane mode: elements, the places where lanes keep them, and who touched shared memory. Every read and write
 * goes through here: a register must be the one of the lane that works on the element, an element of shared memory must
 * have been written, and a barrier must lie between two lanes that touch the same word unless both only read it. */
#include "kernel/kernel_lanes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool kernel_lanes_fault(kernel_worker *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(w->fault.told, sizeof w->fault.told, format, arguments);
    va_end(arguments);
    w->fault.what = KERNEL_FAULT_TOLD;
    return false;
}

void kernel_lanes_begin(const kernel_machine *m, kernel_worker *w) {
    static const lanes_mark nobody = {.lane = -1};
    const smg_kernel *k = m->k;
    kernel_lanes *l = w->lanes;
    for (int t = 0; t < k->tiles.count; t++) {
        const smg_tile *tile = &k->tiles.items[t];
        int64_t count = l->tile[t].one * smg_tile_slots(tile);
        for (int64_t i = 0; i < count; i++) l->tile[t].value[i] = (double)NAN;
        memset(l->tile[t].set, 0, (size_t)count * sizeof *l->tile[t].set);
        l->tile[t].walk = NULL;
        l->tile[t].partial = 0;
    }
    const lanes_word unused = {(double)NAN, -1, nobody, {{nobody, nobody}, {nobody, nobody}}};
    for (int64_t i = 0; i < m->lanes->words; i++) l->word[i] = unused;
    for (int scope = 0; scope < LANES_SCOPES; scope++) l->epoch[scope] = 0;
}

/* ---- the elements at hand --------------------------------------------------------------------------- */

lanes_walk kernel_lanes_walk(const kernel_machine *m, kernel_worker *w, int layout) {
    const lanes_places *p = &m->lanes->places[layout];
    w->lanes->layout = layout;
    w->lanes->walk = NULL;
    return (lanes_walk){.places = p, .end = (int64_t)p->registers * m->k->lanes};
}

lanes_walk kernel_lanes_deal(const kernel_machine *m, kernel_worker *w, const smg_instr *instr) {
    const lanes_places *p = &m->lanes->walks[instr - m->k->code.items];
    w->lanes->layout = -1;
    w->lanes->walk = p;
    return (lanes_walk){.places = p, .dealt = true, .end = (int64_t)p->registers * m->k->lanes};
}

static inline bool inside_tile(const lanes_places *p, int reg, int lane) {
    for (int a = 0; p->ragged && a < p->axis_count; a++)
        if (p->by_register[a][reg] + p->by_lane[a][lane] >= p->tile[a]) return false;
    return true;
}

int kernel_lanes_live(const lanes_places *p, int lane, int *out_live) {
    int count = 0;
    for (int r = 0; r < p->registers; r++)
        if (inside_tile(p, r, lane)) out_live[count++] = r;
    return count;
}

/* The numbers of a block's lanes and registers, without places behind the end of a tile: lane by lane, or where they
 * are dealt register by register. */
static int next_places(const kernel_machine *m, kernel_lanes *l, lanes_walk *walk) {
    const lanes_places *p = walk->places;
    int count = walk->dealt ? m->k->lanes : p->registers, n = 0;
    int slow = (int)(walk->next / count), fast = (int)(walk->next % count);
    while (walk->next < walk->end && n < KERNEL_BLOCK) {
        int end = count - fast < KERNEL_BLOCK - n ? count : fast + KERNEL_BLOCK - n;
        walk->next += end - fast;
        for (; fast < end; fast++) {
            int lane = walk->dealt ? fast : slow, reg = walk->dealt ? slow : fast;
            l->lane[n] = lane;
            l->reg[n] = reg;
            n += ((uint32_t)lane & walk->skip) == 0 && inside_tile(p, reg, lane);
        }
        if (fast < count) continue;
        fast = 0;
        slow++;
    }
    return n;
}

static void place_coordinates(kernel_worker *w, const kernel_space *s, const lanes_places *p, int n) {
    const kernel_lanes *l = w->lanes;
    for (int slot = 0; slot < s->axis_count; slot++) {
        int64_t *out = w->coordinate[slot];
        int a = 0;
        while (a < p->axis_count && p->axis[a] != s->axis[slot]) a++;
        for (int i = 0; a == p->axis_count && i < n; i++) out[i] = 0;
        for (int i = 0; a < p->axis_count && i < n; i++)
            out[i] = p->by_register[a][l->reg[i]] + p->by_lane[a][l->lane[i]];
    }
}

/* The number of a dealt element in the order of the walk. */
static int64_t dealt_number(const kernel_lanes *l, const lanes_places *walk, int i) {
    return walk->by_register[0][l->reg[i]] + walk->by_lane[0][l->lane[i]];
}

static void dealt_coordinates(const kernel_machine *m, kernel_worker *w, const kernel_space *s, int n) {
    for (int i = 0; i < n; i++) {
        int64_t number = dealt_number(w->lanes, w->lanes->walk, i);
        for (int slot = s->axis_count - 1; slot >= 0; slot--) {
            int64_t tile = m->k->axes.items[s->axis[slot]].tile;
            w->coordinate[slot][i] = number % tile;
            number /= tile;
        }
    }
}

int kernel_lanes_next(const kernel_machine *m, kernel_worker *w, const kernel_space *s, lanes_walk *walk) {
    kernel_lanes *l = w->lanes;
    int n = next_places(m, l, walk);
    if (walk->dealt)
        dealt_coordinates(m, w, s, n);
    else
        place_coordinates(w, s, walk->places, n);
    for (int i = 0; i < n; i++) w->inside[i] = true;
    kernel_block_mask(m, w, s, 0, s->axis_count, n, w->inside);
    return n;
}

/* ---- sentences -------------------------------------------------------------------------------------- */

typedef struct element_name {
    char text[128];
} element_name;

static int64_t coordinate(const kernel_worker *w, const kernel_space *s, int axis, int i) {
    int slot = kernel_space_slot(s, axis);
    return slot >= 0 ? w->coordinate[slot][i] : 0;
}

/* "element [2, 5] of 't'"; of an exchange, which has no space, "word 3 of 'x'". */
static element_name name_of(const kernel_machine *m, const kernel_worker *w, int tile, const kernel_space *s, int i) {
    const smg_tile *t = &m->k->tiles.items[tile];
    element_name name;
    if (s == NULL) {
        long long word = (long long)(w->address[i] - m->lanes->first_word[tile]);
        (void)snprintf(name.text, sizeof name.text, "word %lld of '%.24s'", word, t->name);
        return name;
    }
    size_t room = sizeof name.text, at = (size_t)snprintf(name.text, room, "element [");
    for (int a = 0; a < t->axis_count; a++)
        at += (size_t)snprintf(name.text + at, room - at, "%s%lld", a > 0 ? ", " : "",
                               (long long)coordinate(w, s, t->axis[a], i));
    (void)snprintf(name.text + at, room - at, "] of '%.24s'", t->name);
    return name;
}

/* ---- where elements are ----------------------------------------------------------------------------- */

static bool spans(const smg_kernel *k, const smg_tile *t) {
    for (int a = 0; a < t->axis_count; a++)
        if (smg_layout_span(&k->layouts.items[t->layout], t->axis[a]) < k->axes.items[t->axis[a]].tile) return false;
    return true;
}

/* Is element i of the block in this register of its lane? */
static bool holds(const kernel_machine *m, const kernel_worker *w, const smg_tile *t, const kernel_space *s, int i,
                  int reg) {
    const lanes_places *p = &m->lanes->places[t->layout];
    for (int a = 0; a < t->axis_count && reg >= 0; a++) {
        int64_t here = 0;
        for (int b = 0; b < p->axis_count; b++)
            if (p->axis[b] == t->axis[a]) here = p->by_register[b][reg] + p->by_lane[b][w->lanes->lane[i]];
        if (here != coordinate(w, s, t->axis[a], i)) return false;
    }
    return reg >= 0;
}

/* The register in which the lane has element i of the block if it has it. */
static int register_of(const kernel_machine *m, const kernel_worker *w, const smg_tile *t, const kernel_space *s,
                       int i) {
    const lanes_places *p = &m->lanes->places[t->layout];
    int64_t part[SMG_LAYOUT_AXES];
    for (int a = 0; a < p->axis_count; a++) {
        part[a] = coordinate(w, s, p->axis[a], i) - p->by_lane[a][w->lanes->lane[i]];
        if (part[a] < 0 || part[a] >= smg_layout_span(&p->layout, p->axis[a])) return -1;
    }
    return (int)smg_layout_register_of(&p->layout, part);
}

static bool find_registers(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n) {
    const kernel_lanes *l = w->lanes;
    const smg_tile *t = &m->k->tiles.items[tile];
    if (l->layout < 0)
        return kernel_lanes_fault(w, "elements that are dealt out over all lanes meet register tile '%s'", t->name);
    const lanes_beside *beside = kernel_lanes_beside(m, t->layout, l->layout);
    int registers = m->lanes->places[t->layout].registers;
    bool sure = !w->picks && beside->held && spans(m->k, t);
    int64_t first = kernel_slot(m, w, t) * l->tile[tile].one;
    for (int i = 0; i < n && sure; i++)
        w->address[i] = first + (int64_t)l->lane[i] * registers + beside->reg[l->reg[i]];
    for (int i = 0; i < n && !sure; i++) {
        int reg = w->picks ? register_of(m, w, t, s, i) : beside->reg[l->reg[i]];
        if (!holds(m, w, t, s, i, reg))
            return kernel_lanes_fault(w, "lane %d works on %s, which it does not hold", l->lane[i],
                                      name_of(m, w, tile, s, i).text);
        w->address[i] = first + (int64_t)l->lane[i] * registers + reg;
    }
    return true;
}

/* Where the slot or slice at hand begins. */
static int64_t first_of(const kernel_machine *m, const kernel_worker *w, int tile) {
    const smg_tile *t = &m->k->tiles.items[tile];
    int64_t first = t->sliced ? w->base[t->ring] * smg_tile_slice_stride(m->k, t)
                              : kernel_slot(m, w, t) * smg_tile_slot_elements(m->k, t);
    return t->residence == SMG_SHARED ? first + m->lanes->first_word[m->lanes->home[tile]] : first;
}

static void find_elements(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n) {
    const smg_tile *t = &m->k->tiles.items[tile];
    int64_t first = first_of(m, w, tile);
    for (int i = 0; i < n; i++) w->address[i] = first;
    for (int slot = 0; slot < s->axis_count; slot++) {
        int64_t stride = smg_tile_stride(m->k, t, s->axis[slot]);
        for (int i = 0; stride > 0 && i < n; i++) w->address[i] += w->coordinate[slot][i] * stride;
    }
}

bool kernel_lanes_find(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n) {
    const kernel_lanes *l = w->lanes;
    const smg_tile *t = &m->k->tiles.items[tile];
    if (t->residence == SMG_REGISTER) return find_registers(m, w, tile, s, n);
    if (t->residence == SMG_VIEW)
        return kernel_lanes_fault(w, "view '%s' is used by another instruction than a product", t->name);
    find_elements(m, w, tile, s, n);
    int64_t first = kernel_slot(m, w, t) * l->tile[tile].one;
    for (int i = 0; t->residence == SMG_STAGING && i < n; i++)
        if (l->walk == NULL || w->address[i] - first != dealt_number(l, l->walk, i))
            return kernel_lanes_fault(w, "lane %d works on %s, which it does not hold", l->lane[i],
                                      name_of(m, w, tile, s, i).text);
    return true;
}

/* ---- shared memory ---------------------------------------------------------------------------------- */

void kernel_lanes_barrier(kernel_worker *w, smg_scope scope) {
    w->lanes->epoch[SMG_SCOPE_SUBGROUP]++;
    if (scope == SMG_SCOPE_WORKGROUP) w->lanes->epoch[SMG_SCOPE_WORKGROUP]++;
}

/* Whose barrier puts the two lanes in order: a subgroup has a power of two of them. */
static inline smg_scope scope_of(const smg_kernel *k, int a, int b) {
    return (a ^ b) < k->subgroup ? SMG_SCOPE_SUBGROUP : SMG_SCOPE_WORKGROUP;
}

/* Is what the lane does now after what the mark tells of? */
static inline bool after(const kernel_machine *m, const kernel_lanes *l, const lanes_mark *mark, int lane) {
    if (mark->lane < 0 || mark->lane == lane) return true;
    smg_scope scope = scope_of(m->k, mark->lane, lane);
    return mark->epoch[scope] < l->epoch[scope];
}

static inline lanes_mark mark_now(const kernel_worker *w, int lane) {
    lanes_mark mark = {.lane = lane, .instr = w->fault.instr};
    memcpy(mark.epoch, w->lanes->epoch, sizeof mark.epoch);
    return mark;
}

/* The place of the lane's subgroup among the readers: its own, or one of nobody since the last barrier. NULL: two
 * others have read, and any writer meets one of them. */
static inline lanes_mark *readers_of(const kernel_machine *m, const kernel_lanes *l, lanes_word *word, int lane) {
    lanes_mark *free = NULL;
    for (int i = 0; i < LANES_READERS; i++) {
        lanes_mark *pair = word->reader[i];
        bool now = pair->lane >= 0 && pair->epoch[SMG_SCOPE_WORKGROUP] == l->epoch[SMG_SCOPE_WORKGROUP];
        if (now && scope_of(m->k, pair->lane, lane) == SMG_SCOPE_SUBGROUP) return pair;
        if (!now) free = pair;
    }
    if (free != NULL) free[0].lane = free[1].lane = -1;
    return free;
}

/* What follows a barrier of the subgroup is after all of its readers before it. Of more than two since, any writer
 * meets one of the first two. */
static inline void note_reader(const kernel_machine *m, const kernel_worker *w, lanes_word *word, int lane) {
    const kernel_lanes *l = w->lanes;
    uint32_t now = l->epoch[SMG_SCOPE_SUBGROUP];
    lanes_mark *pair = readers_of(m, l, word, lane);
    if (pair == NULL) return;
    bool first = pair[0].lane < 0 || pair[0].epoch[SMG_SCOPE_SUBGROUP] < now;
    if (!first && (pair[0].lane == lane || (pair[1].lane >= 0 && pair[1].epoch[SMG_SCOPE_SUBGROUP] == now))) return;
    pair[first ? 0 : 1] = mark_now(w, lane);
}

static bool race(const kernel_machine *m, kernel_worker *w, int lane, const char *verb, const char *element,
                 const lanes_mark *mark, const char *did) {
    return kernel_lanes_fault(w, "lane %d %s %s, which lane %d %s in instruction %d without a %s barrier between", lane,
                              verb, element, mark->lane, did, mark->instr,
                              smg_scope_word(scope_of(m->k, mark->lane, lane)));
}

/* Has the word been written as the tile's, and before what the lane does now? Tiles of one memory begin at the same
 * word, and every use of a tile goes over its first element: what has been written over by another tile is found
 * there. */
static inline bool readable(const kernel_machine *m, const kernel_lanes *l, const lanes_word *word, int tile,
                            int lane) {
    return word->tile == m->lanes->home[tile] && after(m, l, &word->writer, lane);
}

static bool read_word(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int i, double *out) {
    lanes_word *word = &w->lanes->word[w->address[i]];
    int lane = w->lanes->lane[i];
    if (word->tile != m->lanes->home[tile])
        return kernel_lanes_fault(w, "lane %d reads %s, which nobody has written", lane,
                                  name_of(m, w, tile, s, i).text);
    if (!readable(m, w->lanes, word, tile, lane))
        return race(m, w, lane, "reads", name_of(m, w, tile, s, i).text, &word->writer, "wrote");
    note_reader(m, w, word, lane);
    *out = word->value;
    return true;
}

static bool write_word(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int i,
                       double value) {
    lanes_word *word = &w->lanes->word[w->address[i]];
    int lane = w->lanes->lane[i];
    const lanes_mark *marks[] = {&word->writer, &word->reader[0][0], &word->reader[0][1], &word->reader[1][0],
                                 &word->reader[1][1]};
    for (size_t n = 0; n < SMG_COUNT_OF(marks); n++)
        if (!after(m, w->lanes, marks[n], lane))
            return race(m, w, lane, "writes over", name_of(m, w, tile, s, i).text, marks[n], n == 0 ? "wrote" : "read");
    word->value = value;
    word->tile = tile;
    word->writer = mark_now(w, lane);
    return true;
}

bool kernel_lanes_read_word(const kernel_machine *m, kernel_worker *w, int tile, int64_t address, int lane,
                            double *out) {
    w->address[0] = address;
    w->lanes->lane[0] = lane;
    return read_word(m, w, tile, NULL, 0, out);
}

bool kernel_lanes_write_word(const kernel_machine *m, kernel_worker *w, int tile, int64_t address, int lane,
                             double value) {
    w->address[0] = address;
    w->lanes->lane[0] = lane;
    return write_word(m, w, tile, NULL, 0, value);
}

/* ---- reading and writing ---------------------------------------------------------------------------- */

bool kernel_lanes_read(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n, double *out) {
    const lanes_tile *own = &w->lanes->tile[tile];
    const smg_tile *t = &m->k->tiles.items[tile];
    if (smg_matrix_hides(m->k, t))
        return kernel_lanes_fault(w, "an element of '%s' is read, and nobody knows which lane has it", t->name);
    if (!kernel_lanes_find(m, w, tile, s, n)) return false;
    if ((own->partial & ~w->lanes->apart) != 0)
        return kernel_lanes_fault(w, "'%s' is read before its partial sums are joined", t->name);
    w->lanes->parts |= own->partial;
    if (own->walk != NULL && !smg_layout_equal(&own->walk->layout, &w->lanes->walk->layout))
        return kernel_lanes_fault(w, "'%s' is put by another walk than it was fetched by", t->name);
    for (int i = 0; i < n; i++) {
        if (t->residence == SMG_SHARED) {
            if (!read_word(m, w, tile, s, i, &out[i])) return false;
        } else if (!own->set[w->address[i]]) {
            return kernel_lanes_fault(w, "lane %d reads %s, which nobody has written", w->lanes->lane[i],
                                      name_of(m, w, tile, s, i).text);
        } else {
            out[i] = own->value[w->address[i]];
        }
    }
    return true;
}

bool kernel_lanes_write(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n,
                        const double *value) {
    lanes_tile *own = &w->lanes->tile[tile];
    if (!kernel_lanes_find(m, w, tile, s, n)) return false;
    if (m->k->tiles.items[tile].residence == SMG_STAGING) own->walk = w->lanes->walk;
    for (int i = 0; i < n; i++) {
        if (m->k->tiles.items[tile].residence == SMG_SHARED) {
            if (!write_word(m, w, tile, s, i, value[i])) return false;
        } else {
            own->value[w->address[i]] = value[i];
            own->set[w->address[i]] = true;
        }
    }
    return true;
}

bool kernel_lanes_load(const kernel_machine *m, kernel_worker *w, int tile, const lanes_places *p, const int *from,
                       double *out) {
    kernel_lanes *l = w->lanes;
    int64_t first = first_of(m, w, tile);
    for (int lane = 0, i = 0; lane < m->k->lanes; lane++)
        for (int r = 0; r < p->registers; r++, i++) {
            if (from[i] == LANES_OUTSIDE) continue;
            lanes_word *word = &l->word[first + from[i]];
            if (!readable(m, l, word, tile, lane)) {
                kernel_space s = {.elements = 1};
                kernel_space_add(m->k, &s, m->k->tiles.items[tile].axis_count, m->k->tiles.items[tile].axis);
                l->lane[0] = lane;
                l->reg[0] = r;
                place_coordinates(w, &s, p, 1);
                w->address[0] = first + from[i];
                return read_word(m, w, tile, &s, 0, &out[i]);
            }
            note_reader(m, w, word, lane);
            out[i] = word->value;
        }
    return true;
}

/* ---- copies ----------------------------------------------------------------------------------------- */

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* "element [2, 5] of 't'", of a register of a lane. */
static element_name name_in(const kernel_machine *m, kernel_worker *w, int tile, int lane, int reg) {
    const smg_tile *t = &m->k->tiles.items[tile];
    kernel_space s = {.elements = 1};
    kernel_space_add(m->k, &s, t->axis_count, t->axis);
    w->lanes->lane[0] = lane;
    w->lanes->reg[0] = reg;
    place_coordinates(w, &s, &m->lanes->places[t->layout], 1);
    return name_of(m, w, tile, &s, 0);
}

bool kernel_lanes_compare(const kernel_machine *m, kernel_worker *w, int tile) {
    const lanes_tile *own = &w->lanes->tile[tile];
    const lanes_places *p = &m->lanes->places[m->k->tiles.items[tile].layout];
    uint32_t copies = p->copies & ~own->partial;
    const double *value = own->value + kernel_slot(m, w, &m->k->tiles.items[tile]) * own->one;
    for (int lane = 0; lane < m->k->lanes; lane++) {
        int first = (int)((uint32_t)lane & ~copies);
        if (first == lane) continue;
        const double *a = value + (int64_t)first * p->registers, *b = value + (int64_t)lane * p->registers;
        for (int r = 0; r < p->registers; r++)
            if (!same(a[r], b[r]))
                return kernel_lanes_fault(w, "lanes %d and %d hold %s and differ: %.9g and %.9g", first, lane,
                                          name_in(m, w, tile, lane, r).text, a[r], b[r]);
    }
    return true;
}
