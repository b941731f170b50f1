/* Schedules that multiply by matrices: subgroups share out a block's rows and columns, and each has as many matrices of
 * both as its registers hold. What else a schedule decides is as on the scalar tier. */
#include <math.h>

#include "sched/sched_internal.h"

#define MOST_SUBGROUPS 8   /* of a workgroup */
#define MOST_DEPTH 4       /* matrices behind each other in one slice of a contraction */
#define ENOUGH_SUBGROUPS 4 /* for one core */
#define SUMS_SHARE 2       /* sums have this share of a lane's registers at most */
#define FEW_RESULTS 12288  /* of a core: three blocks of 64 x 64 */
#define STREAM_RUN 8       /* halves that one load takes */
#define STREAM_SUMS 128    /* of a lane, at most */
#define STREAM_FEW 32      /* the same where subgroups share out rows or columns as well */
#define STREAM_SUBGROUPS 8 /* of a workgroup that reads both factors straight from memory */
#define STREAM_MOST 16     /* the same where all of them share out k */
#define STREAM_SHARING 4   /* of them that share out k, at least */
#define STREAM_STEPS 8     /* of a contraction: loads of so few are on their way together */
#define STREAM_BLOCKS 3    /* for one core, at most: more of them read the factors too often */
#define BESIDE_SUMS 64     /* of a lane whose right factors alone come so, at most */
#define BESIDE_IN_ROW 128  /* the same where no other subgroup of the workgroup reads them */
#define BESIDE_SUBGROUPS 4 /* of their workgroup, at most: of two on a core one multiplies while the other waits */
#define MOST_STREAMED 2    /* of them behind each other in one slice of a contraction */
#define FACTOR_BYTES 2.0   /* of an element */
#define CACHE_SHARE 0.5    /* that factors may take */
#define BAND_BLOCKS 2      /* for each core, that run at a time */
#define THAN_LARGER 0.95   /* blocks between powers of two leave cores at most that of the work of larger ones */
#define THAN_SMALLER 1.1   /* and of smaller ones, which read more for each product */
#define RINGS 2            /* slots of factors that are on their way for several steps; more spill */
#define RING_SUMS 64       /* of a lane, at least */

/* ---- which products --------------------------------------------------------------------------------- */

static bool is_stored_as(const enumerator *e, const smg_soperand *operand, smg_type type) {
    const smg_space *s = e->space;
    if (operand->producer < 0 && operand->view < 0) return false; /* a number */
    smg_node_id id =
        operand->producer >= 0 ? s->nodes.items[operand->producer].node : s->views.items[operand->view].source;
    return id >= 0 && smg_graph_storage(s->graph, id) == type;
}

/* Are the factors of all products values of that type? */
static bool factors_are(const enumerator *e, smg_type type) {
    for (int i = 0; i < e->space->nodes.count; i++) {
        const smg_snode *n = &e->space->nodes.items[i];
        if (n->class_ != SMG_CLASS_CONTRACT || n->operand_count == 1) continue;
        if (!is_stored_as(e, &n->operand[0], type) || !is_stored_as(e, &n->operand[1], type)) return false;
    }
    return true;
}

/* The type of 16 bits that all factors have: then nothing is lost where a matrix takes them. False: there is none. */
static bool factor_type(const enumerator *e, smg_type *out_type) {
    static const smg_type types[] = {SMG_TYPE_F16, SMG_TYPE_BF16};
    for (size_t i = 0; i < SMG_COUNT_OF(types); i++) {
        *out_type = types[i];
        if (factors_are(e, *out_type)) return true;
    }
    return false;
}

bool smg_sched_matrix_is_of(const smg_matrix_shape *shape, smg_type factor) {
    smg_type type;
    return smg_type_find(shape->a, &type) && type == factor && strcmp(shape->a, shape->b) == 0 &&
           strcmp(shape->result, "f32") == 0 && strcmp(shape->c, "f32") == 0;
}

static bool is_larger(const smg_matrix_shape *a, const smg_matrix_shape *b) {
    return a->m * a->n * a->k > b->m * b->n * b->k;
}

static bool is_known(const smg_target *t, const smg_matrix_shape *shape) {
    return smg_target_fragment(t, shape, SMG_MATRIX_ACCUMULATOR) != NULL;
}

/* Where nobody knows which lane has which sum, they come by shared memory. */
static bool serves(const smg_target *t, const smg_matrix_shape *shape, smg_type factor) {
    smg_layout dealt;
    if (!smg_sched_matrix_is_of(shape, factor) || t->subgroup_size < 2) return false;
    return is_known(t, shape) || smg_matrix_dealt(shape, t->subgroup_size, &dealt);
}

/* The largest that serves: it reads least for each product. Before all that are opaque those that are known. NULL:
 * none. */
static const smg_matrix_shape *matrix_of(const smg_target *t, smg_type factor) {
    const smg_matrix_shape *best = NULL;
    for (int i = 0; i < t->matrix_count; i++) {
        const smg_matrix_shape *shape = &t->matrix[i];
        if (!serves(t, shape, factor)) continue;
        bool better =
            best == NULL || (is_known(t, shape) == is_known(t, best) ? is_larger(shape, best) : is_known(t, shape));
        if (better) best = shape;
    }
    return best;
}

const smg_layout *smg_sched_sums(const smg_schedule *s, smg_layout *room) {
    if (s->matrix_sums != NULL) return s->matrix_sums;
    (void)smg_matrix_dealt(s->matrix, s->subgroup, room); /* serves: they are */
    return room;
}

/* Lanes of a subgroup that lie along one side of the matrix. */
static int lanes_along(const smg_layout *of, int side) {
    int lanes = 1;
    for (uint32_t mask = smg_layout_mask(of, SMG_LAYOUT_LANE, side); mask != 0; mask &= mask - 1) lanes *= 2;
    return lanes;
}

/* Products of few results for each core by matrices read their factors along what is contracted: slices of them are
 * deeper than they are wide, and so are runs of memory. Of fewer rows than a matrix has, subgroups stream along it. */
smg_along smg_sched_along(const smg_target *t, smg_type factor) {
    const smg_matrix_shape *shape = smg_target_hides_loads(t) ? matrix_of(t, factor) : NULL;
    smg_along along = {0};
    if (shape == NULL) return along;
    along.results = t->cores * FEW_RESULTS;
    const smg_layout *left = smg_target_fragment(t, shape, SMG_MATRIX_A);
    const smg_layout *right = smg_target_fragment(t, shape, SMG_MATRIX_B);
    if (left == NULL || right == NULL) return along;
    along.rows = shape->m;
    along.streamed = t->cores * STREAM_SUMS * t->subgroup_size;
    if (lanes_along(right, SMG_FRAGMENT_COLUMN) == 1) return along; /* its blocks are rows */
    along.block_rows = lanes_along(right, SMG_FRAGMENT_COLUMN);
    along.block_cols = 1 << smg_layout_in_runs(left, SMG_FRAGMENT_COLUMN, right, SMG_FRAGMENT_ROW, STREAM_RUN).run;
    return along;
}

/* ---- sizes -------------------------------------------------------------------------------------------- */

static int64_t round_up(int64_t size, int64_t by) {
    return (size + by - 1) / by * by;
}

/* Elements of all these axes together. */
static double elements_of(const enumerator *e, smg_axis_set axes) {
    double elements = 1;
    for (int a = 0; a < e->space->axes.count; a++)
        if (axes & SMG_AXIS_BIT(a)) elements *= (double)e->nominal[a];
    return elements;
}

/* Are the factors of all products that have the axis more than stays in the cache until they are read again? */
static bool overflows(const enumerator *e, int axis) {
    double bytes = 0;
    for (int i = 0; i < e->products; i++) bytes += elements_of(e, e->sums[i] | SMG_AXIS_BIT(axis)) * FACTOR_BYTES;
    return bytes > CACHE_SHARE * (double)e->target->cache_bytes;
}

static bool right_overflows(const enumerator *e, const smg_schedule *s) {
    return s->col_axis >= 0 && s->temporal < 0 && overflows(e, s->col_axis);
}

/* Where neither factor stays in the cache, blocks that run at a time are about as many rows high as columns wide, and
 * read least of both. */
static int64_t band_of(const enumerator *e, const smg_schedule *s) {
    int64_t band = 1, rows = s->row_axis >= 0 ? s->tile[s->row_axis] : 0;
    if (rows == 0 || s->col_axis < 0 || !overflows(e, s->row_axis)) return 0;
    double area = BAND_BLOCKS * (double)e->target->cores * (double)s->tile[s->col_axis] / (double)rows;
    while (4 * (double)(band * band) <= area) band *= 2;
    return band * rows < e->nominal[s->row_axis] ? band : 0;
}

/* What products go over is whole matrices, also where the axis is shorter; of what is held there are several. An axis
 * may be rows of one product and contracted by another one: any side of a matrix fits then. Few columns that nothing
 * contracts are those of one matrix. */
static void fill_matrices(const enumerator *e, const smg_matrix_shape *shape, smg_schedule *s) {
    int64_t most = shape->m > shape->n ? shape->m : shape->n;
    if (most < shape->k) most = shape->k;
    for (int i = 0; i < e->space->nodes.count; i++) {
        const smg_snode *n = &e->space->nodes.items[i];
        if (n->class_ != SMG_CLASS_CONTRACT) continue;
        for (int a = 0; a < e->space->axes.count; a++) {
            bool few = a == s->col_axis && e->nominal[a] <= shape->n && !(e->roles.contracted & SMG_AXIS_BIT(a));
            if ((n->iterates & ~s->held & SMG_AXIS_BIT(a)) && s->tile[a] > 1)
                s->tile[a] = round_up(s->tile[a], few ? shape->n : most);
        }
    }
    sched_fill_slices(s);
    s->band = s->rows_next ? band_of(e, s) : 0;
}

/* Elements of held axes: so many sets of matrices has a lane. */
static int64_t sets_of(const enumerator *e, const smg_schedule *s) {
    smg_axis_set products = 0;
    int64_t sets = 1, extent;
    for (int i = 0; i < e->space->nodes.count; i++)
        if (e->space->nodes.items[i].class_ == SMG_CLASS_CONTRACT) products |= e->space->nodes.items[i].iterates;
    for (int a = 0; a < e->space->axes.count; a++)
        if ((products & s->held & SMG_AXIS_BIT(a)) &&
            smg_size_is_const(e->space->graph->sizes, e->space->axes.items[a].extent, &extent))
            sets = smg_mul_at_most(sets, extent, INT32_MAX);
    return sets;
}

/* Are the factors worth being on their way for several steps? Slices of one matrix are short, and a lane has sums
 * enough to hide one behind. */
static bool in_rings(const enumerator *e, const lane_shape *shape, const smg_schedule *s) {
    int64_t sums = (int64_t)shape->row_registers * shape->col_registers;
    return s->matrix_right != NULL && s->matrix_left != NULL && s->temporal < 0 && s->columns == 0 &&
           s->lane_depth == 1 && shape->inner == s->matrix->k && sums * sets_of(e, s) >= RING_SUMS;
}

static smg_schedule with_rings(smg_schedule s) {
    s.rings = RINGS;
    s.ahead = 1;
    return s;
}

/* Bodies whose left factors stay in shared memory: right ones may come straight from memory. */
static smg_status push_right(enumerator *e, smg_schedule s) {
    if (s.matrix_left == NULL || s.matrix_right == NULL) return SMG_OK;
    s.streams = true;
    s.reuse = false;
    s.ahead = 0;
    return sched_has_room(e, &s) ? sched_push(e, s) : SMG_OK;
}

static smg_status push(enumerator *e, const lane_shape *shape, bool whole, smg_schedule s) {
    sched_set_tiles(e, shape, whole, &s);
    fill_matrices(e, s.matrix, &s);
    bool turns = s.columns == 0 && sched_takes_turns(e, &s);
    if (e->space->repeat.slice_count > 0) SMG_TRY(push_right(e, s));
    s.reuse = turns;
    e->crowded = !sched_has_room(e, &s);
    if (e->crowded) return SMG_OK;
    int most = !smg_target_hides_loads(e->target) ? 0 : s.temporal >= 0 && e->roles.contractions > 1 ? 2 : 1;
    for (int reuse = turns; reuse >= 0; reuse--) {
        s.reuse = reuse == 1;
        for (s.ahead = most; s.ahead >= 0; s.ahead--) SMG_TRY(sched_push(e, s));
        if (most > 0 && in_rings(e, shape, &s)) SMG_TRY(sched_push(e, with_rings(s)));
    }
    return SMG_OK;
}

/* ---- straight from memory ------------------------------------------------------------------------------- */

/* Have cores subgroups enough, one workgroup for each block of so many results? */
static bool has_subgroups(const enumerator *e, const smg_schedule *s, int64_t block) {
    double subgroups = (double)(s->matrix_rows * s->matrix_cols);
    return elements_of(e, s->grid) / (double)block * subgroups >= ENOUGH_SUBGROUPS * (double)e->target->cores;
}

/* May a workgroup have so many subgroups? */
static bool may_have(const enumerator *e, const smg_schedule *s, int subgroups) {
    int64_t lanes = (int64_t)subgroups * s->subgroup;
    return lanes <= e->target->max_invocations && lanes <= e->target->max_size_x;
}

/* May subgroups share out the contraction? Not beside other products, whose slices fill shared memory, and not where
 * running sums are corrected in between: their parts would be joined in each slice. */
static bool is_shareable(const enumerator *e, const smg_schedule *s) {
    bool alone = e->factored == 1 && s->temporal < 0 && s->columns == 0 && s->held == 0 && s->col_axis >= 0;
    return alone && smg_target_hides_loads(e->target);
}

/* Where subgroups of a workgroup share out k there are enough of them for loads to be on their way: of few blocks for
 * each core, and of few sums beside them. */
static bool may_stream(const enumerator *e, const lane_shape *shape, const smg_schedule *s) {
    double sums = (double)shape->row_registers * shape->col_registers;
    double most = STREAM_BLOCKS * (double)e->target->cores * sums * shape->rows * shape->cols;
    bool few = sums <= (s->matrix_rows * s->matrix_cols == 1 ? STREAM_SUMS : STREAM_FEW);
    return s->matrix_left != NULL && s->matrix_right != NULL && few && elements_of(e, s->grid) <= most;
}

/* Neighbours along a contraction that a lane's runs of both factors take together. */
static int stream_run(const smg_schedule *s) {
    smg_layout_order order =
        smg_layout_in_runs(s->matrix_left, SMG_FRAGMENT_COLUMN, s->matrix_right, SMG_FRAGMENT_ROW, STREAM_RUN);
    return 1 << order.run;
}

/* Steps of one run of a lane each; of several, where there are many steps. */
static smg_status add_slices(enumerator *e, lane_shape shape, smg_schedule s) {
    for (int n = 1; n <= MOST_STREAMED; n *= 2) {
        if (n > 1 && elements_of(e, e->sums[0]) <= (double)shape.inner * STREAM_STEPS) break;
        shape.inner = n * s.lane_depth * stream_run(&s);
        sched_set_tiles(e, &shape, false, &s);
        fill_matrices(e, s.matrix, &s);
        if (sched_has_room(e, &s)) SMG_TRY(sched_push(e, s));
    }
    return SMG_OK;
}

/* Blocks of the same columns run together: what one reads of a right factor that no cache has yet serves the others. */
static smg_status add_streams(enumerator *e, lane_shape shape, smg_schedule s) {
    int subgroups = s.matrix_rows * s.matrix_cols, most = subgroups == 1 ? STREAM_MOST : STREAM_SUBGROUPS;
    if (!is_shareable(e, &s) || !may_stream(e, &shape, &s)) return SMG_OK;
    s.streams = s.rows_next = true;
    s.ahead = 0;
    s.reuse = false;
    for (s.lane_depth = STREAM_SUBGROUPS / subgroups; s.lane_depth * subgroups <= most; s.lane_depth *= 2) {
        bool shared = s.lane_depth >= STREAM_SHARING && may_have(e, &s, s.lane_depth * subgroups);
        if (shared) SMG_TRY(add_slices(e, shape, s));
    }
    return SMG_OK;
}

/* Left factors through shared memory, right ones straight from there (lower_beside.c): where enough subgroups run that
 * loads which are on their way for one step are there behind it. */
static smg_status add_beside(enumerator *e, lane_shape shape, smg_schedule s) {
    int64_t sums = (int64_t)shape.row_registers * shape.col_registers;
    bool known = s.matrix_left != NULL && s.matrix_right != NULL;
    bool plain = s.lane_depth == 1 && s.temporal < 0 && s.columns == 0 && s.held == 0;
    int64_t most = s.matrix_rows == 1 ? BESIDE_IN_ROW : BESIDE_SUMS;
    if (!known || !plain || !smg_target_hides_loads(e->target) || sums * e->beside > most) return SMG_OK;
    if (s.matrix_rows * s.matrix_cols > BESIDE_SUBGROUPS) return SMG_OK;
    if (!has_subgroups(e, &s, sums * shape.rows * shape.cols)) return SMG_OK;
    s.streams = true;
    for (int n = 1; n <= MOST_STREAMED; n *= 2) {
        shape.inner = n * stream_run(&s);
        sched_set_tiles(e, &shape, false, &s);
        fill_matrices(e, s.matrix, &s);
        s.reuse = false;
        if (sched_has_room(e, &s)) SMG_TRY(sched_push(e, with_rings(s)));
    }
    return SMG_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------- */

static smg_status add_depths(enumerator *e, lane_shape shape, const smg_schedule *s) {
    for (int n = 1; n <= MOST_DEPTH; n *= 2) {
        shape.inner = n * s->lane_depth * s->matrix->k;
        SMG_TRY(push(e, &shape, s->temporal >= 0, *s));
        if (s->temporal >= 0 && e->crowded && sched_whole_or_sliced(e, s)) SMG_TRY(push(e, &shape, false, *s));
        if (s->temporal >= 0 || e->crowded) break; /* a slice of it is as deep as its columns are wide */
    }
    return SMG_OK;
}

/* Subgroups that share out a contraction, where blocks (of so many results each) give cores too few of them. A slice is
 * then as many times deeper. */
static int most_sharing(const enumerator *e, const smg_schedule *s, int64_t results) {
    int subgroups = s->matrix_rows * s->matrix_cols, most = MOST_SUBGROUPS / subgroups;
    if (!is_shareable(e, s)) return 1;
    while (most > 1 && !may_have(e, s, most * subgroups)) most /= 2;
    return has_subgroups(e, s, results) ? 1 : most;
}

/* Matrices of a subgroup along one side: 1, 2, 3, 4, 6, 8, 12 ... */
static int64_t next_count(int64_t n) {
    return n < 3 ? n + 1 : n % 3 == 0 ? n / 3 * 4 : n / 2 * 3;
}

/* Elements that one core works on after the other, were all blocks so high and wide: cores run whole waves of blocks,
 * and what is behind the end of an axis counts. Slices of a temporal axis are as wide. */
static double worked_on(const enumerator *e, const smg_schedule *s, int64_t height, int64_t width) {
    const smg_target *t = e->target;
    int64_t lanes = (int64_t)s->matrix_rows * s->matrix_cols * s->subgroup;
    double blocks = 1, slices = 1, held = floor((double)t->registers_core / (double)(t->registers_lane * lanes));
    double places = (double)t->cores * fmax(1, held);
    for (int a = 0; a < e->space->axes.count; a++) {
        int64_t tile = a == s->row_axis ? height : a == s->col_axis ? width : 1;
        if (s->grid & SMG_AXIS_BIT(a)) blocks *= ceil((double)e->nominal[a] / (double)tile);
    }
    if (s->col_axis < 0 && s->temporal >= 0) slices = ceil((double)e->nominal[s->temporal] / (double)width);
    return ceil(blocks / places) * slices * (double)height * (double)width;
}

/* Powers of two are a coarse choice: three times such ones come between them, along one side, where they leave cores
 * idle for less than the next larger ones do. Not where products side by side have more than `most` matrices of sums
 * together: these fit into registers by count, and spill. */
static bool worth_trying(const enumerator *e, const smg_schedule *s, int64_t down, int64_t across, int64_t most) {
    bool high = down % 3 == 0, wide = across % 3 == 0;
    if (!high && !wide) return true;
    if ((high && wide) || down * across * e->beside > most) return false;
    int64_t height = down * s->matrix->m * s->matrix_rows, width = across * s->matrix->n * s->matrix_cols;
    double own = worked_on(e, s, height, width);
    double smaller = worked_on(e, s, high ? height / 3 * 2 : height, wide ? width / 3 * 2 : width);
    double larger = worked_on(e, s, high ? height / 3 * 4 : height, wide ? width / 3 * 4 : width);
    return own <= THAN_LARGER * larger && own <= THAN_SMALLER * smaller;
}

/* Every number of matrices that a subgroup may have, from one to what half of its registers hold. */
static smg_status add_blocks(enumerator *e, smg_schedule s) {
    smg_layout room;
    int64_t sums = smg_layout_registers(smg_sched_sums(&s, &room)) * sets_of(e, &s),
            most = (e->target->registers_lane + 1) / SUMS_SHARE;
    int64_t rows = e->nominal[s.row_axis], cols = s.col_axis >= 0 ? e->nominal[s.col_axis] : INT64_MAX / 2;
    if (s.col_axis < 0 && s.temporal >= 0) cols = e->nominal[s.temporal];
    bool whole = e->space->repeat.count > 0 || (s.col_axis < 0 && s.temporal < 0); /* a block has all columns */
    int64_t crowded = INT64_MAX; /* matrices across for which there was no room beside fewer of them down */
    lane_shape shape = {.rows = s.lane_rows, .cols = s.lane_cols, .depth = 1};
    for (int64_t down = 1; down * sums <= most; down = next_count(down)) {
        for (int64_t across = 1; across < crowded && down * across * sums <= most; across = next_count(across)) {
            if (across > 1 && whole) break;
            int64_t height = down * s.matrix->m * s.matrix_rows;
            int64_t width = across * s.matrix->n * s.matrix_cols;
            if (!sched_side_fits(height, rows, s.matrix->m) || !sched_side_fits(width, cols, s.matrix->n)) continue;
            if (!worth_trying(e, &s, down, across, most / sums)) continue;
            shape.row_registers = (int)(height / s.lane_rows);
            shape.col_registers = (int)(width / s.lane_cols);
            SMG_TRY(add_streams(e, shape, s));
            for (s.lane_depth = 1; s.lane_depth <= most_sharing(e, &s, height * width); s.lane_depth *= 2) {
                if (e->products == e->factored) SMG_TRY(add_depths(e, shape, &s));
                SMG_TRY(add_beside(e, shape, s));
                if (e->crowded && s.columns != 0) crowded = across; /* else factors may come from memory */
            }
        }
    }
    return SMG_OK;
}

/* Has no other block room either? Factors that come straight from memory need less, but only where nothing is held, or
 * bodies are. */
static bool is_hopeless(const enumerator *e, const smg_schedule *s) {
    return s->columns != 0 && e->space->repeat.count == 0 && !sched_least_has_room(e, *s);
}

/* Is the other shape worth its own schedules, beside those of the largest? Where its products are faster, or where the
 * block has no more rows or columns than it. */
static bool adds_to(const enumerator *e, const smg_schedule *s, const smg_matrix_shape *other,
                    const smg_matrix_shape *largest) {
    int64_t rows = e->nominal[s->row_axis], cols = s->col_axis >= 0 ? e->nominal[s->col_axis] : INT64_MAX;
    if (is_known(e->target, other) != is_known(e->target, largest)) return false;
    return other->rate > largest->rate || (other->m < largest->m && rows <= other->m) ||
           (other->n < largest->n && cols <= other->n);
}

static smg_status add_shape(enumerator *e, const smg_schedule *base, const smg_matrix_shape *shape) {
    const smg_target *t = e->target;
    smg_schedule s = *base;
    s.matrix = shape;
    s.matrix_sums = smg_target_fragment(t, s.matrix, SMG_MATRIX_ACCUMULATOR);
    s.matrix_left = smg_target_fragment(t, s.matrix, SMG_MATRIX_A);
    s.matrix_right = smg_target_fragment(t, s.matrix, SMG_MATRIX_B);
    s.subgroup = (int)t->subgroup_size;
    smg_layout room;
    const smg_layout *sums = smg_sched_sums(&s, &room);
    int rows = lanes_along(sums, SMG_FRAGMENT_ROW), cols = lanes_along(sums, SMG_FRAGMENT_COLUMN);
    if ((int64_t)rows * cols != t->subgroup_size) return SMG_OK;
    if (!t->subgroup_selectable && t->subgroup_min != t->subgroup_max) return SMG_OK;
    s.lane_depth = s.vec = 1;
    s.row_run = 1;
    s.rows_next = right_overflows(e, &s);
    int before = e->out->items.count;
    for (s.matrix_rows = 1; s.matrix_rows <= MOST_SUBGROUPS; s.matrix_rows *= 2) {
        for (s.matrix_cols = 1; s.matrix_rows * s.matrix_cols <= MOST_SUBGROUPS; s.matrix_cols *= 2) {
            s.lane_depth = 1;
            if (!may_have(e, &s, s.matrix_rows * s.matrix_cols)) continue;
            s.lane_rows = s.matrix_rows * rows;
            s.lane_cols = s.matrix_cols * cols;
            SMG_TRY(add_blocks(e, s));
            bool first = s.matrix_rows == 1 && s.matrix_cols == 1;
            if (first && e->out->items.count == before && is_hopeless(e, &s)) return SMG_OK;
        }
    }
    return SMG_OK;
}

smg_status sched_add_matrices(enumerator *e, const smg_schedule *base) {
    const smg_target *t = e->target;
    smg_type factor;
    bool sums = e->products > e->factored;
    if (sums && e->space->form != SMG_SPACE_LINEAR) return SMG_OK;
    if (e->roles.contractions == 0 || base->row_axis < 0 || base->more_rows[0] >= 0 || base->one_by_one) return SMG_OK;
    const smg_matrix_shape *largest = factor_type(e, &factor) ? matrix_of(t, factor) : NULL;
    if (largest == NULL) return SMG_OK;
    SMG_TRY(add_shape(e, base, largest));
    for (int i = 0; i < t->matrix_count; i++) {
        const smg_matrix_shape *other = &t->matrix[i];
        if (other == largest || !serves(t, other, factor) || !adds_to(e, base, other, largest)) continue;
        SMG_TRY(add_shape(e, base, other));
    }
    return SMG_OK;
}
