/* plan_internal.h: segments of the linear order, their prices and the cache of repeated ones. */
#ifndef SMG_PLAN_INTERNAL_H
#define SMG_PLAN_INTERNAL_H

#include <math.h>

#include "lower/lower.h"
#include "plan/plan.h"

/* Nodes and products of a segment where nobody asks for more, or fewer; those that may be asked for. */
#define PLAN_SEGMENT 40
#define PLAN_PRODUCTS 6
#define PLAN_MAX_SEGMENT 100
#define PLAN_MAX_PRODUCTS 24
#define PLAN_MAX_MEMBERS 160 /* of a segment, with what its nodes compute anew */

/* What is known of a segment once it has been tried; shared by all segments of the same structure. */
typedef struct segment {
    bool possible;
    smg_price price;
    double expected;              /* seconds, where masks leave out what they may be expected to */
    smg_schedule schedule;        /* space pointer is stale: the axes' numbers are what repeats */
    bool multiplies_sums;         /* smg_space_multiply_sums */
    const char *refused;          /* when not possible */
    bool hopeless;                /* no common space: more nodes do not change that */
    uint64_t key;                 /* of its structure */
    uint64_t structure;           /* the same whatever sizes are called, at nominal ones */
    uint64_t kept;                /* and of the registers its programs may plan: the key of what is kept of it */
    uint64_t at;                  /* and of the nominal sizes */
    const smg_cut *cut;           /* what was measured of these nodes together and apart; NULL: nothing */
    int rejected;                 /* schedules that were left out because the options reject them */
    const smg_measured *measured; /* the schedule is the one that was fastest, not the one of the price; NULL: it is */
    smg_price measured_price;     /* then of that schedule */
    int body;                     /* nodes of one of its equal bodies (plan_repeat.c); 0: it is no repetition */
    double least; /* seconds that its price is not below, as guesses say, and no more is known; 0: all is */
    double share; /* the least that is left of loops which masks make shorter; 0: none is, or nobody knows */
} segment;

/* Of the value of one place, which others read. */
typedef struct plan_life {
    int64_t bytes;
    int64_t across; /* of all that is made before this place and read from it on */
} plan_life;

/* Of a node while a segment is hashed, from 1; 0: none. */
typedef struct plan_spot {
    int member; /* its number among the segment's nodes */
    int read;   /* and among what they read */
} plan_spot;

/* Segments that may get a price; what is in the cache has one. */
typedef struct plan_budget {
    int most, priced, refused;
} plan_budget;

typedef struct planner {
    const smg_graph *g;
    const smg_target *target;
    const smg_plan_options *options;
    smg_context *ctx;
    smg_arena *arena;
    smg_map *cache;      /* segment.kept -> segment */
    smg_map *rivals;     /* the same -> schedules to be measured */
    smg_map *searches;   /* the same -> how the schedule was found */
    smg_map *asked;      /* what the numeric gate said, for all segments */
    smg_search *record;  /* of the segment that is tried; NULL: nobody asks */
    uint64_t *hash;      /* per node: what it does, smg_node_hash */
    uint64_t *hash_at;   /* per node: the same at nominal sizes, whatever these are called */
    int64_t *nominal;    /* per symbol */
    double kept;         /* share of a row's keys that masks may be expected to keep (plan_ends.c) */
    double share;        /* of the steps of loops that any kernel takes at least; 0: nobody knows */
    double *map_cost;    /* per node: multiply-adds for one element of a map, else 0 */
    bool *prepared;      /* per node: computed once, by the prepare list */
    bool *inlined;       /* per node: computed anew by every reader */
    bool *weighed;       /* per inlined node: it could have a kernel, a rough price decided */
    bool *bound;         /* per inlined node: it reads the result of a kernel, which has to come before its readers */
    bool preparing;      /* the order at hand is the prepare list's */
    bool again;          /* something is not computed anew any more: the order is another one */
    int count;           /* nodes in the order */
    smg_node_id *order;  /* compute nodes, no views or leaves */
    int *place;          /* per node: position in its order, -1 */
    int *last_use;       /* per node: position of its last reader; INT32_MAX for what leaves the list */
    plan_life *lives;    /* per place */
    bool oversized;      /* some value would be larger than a buffer if it was left between kernels */
    bool any_size;       /* and there is no way without one */
    bool *needed;        /* per node: scratch for one segment */
    plan_spot *spots;    /* per node: scratch */
    plan_budget *budget; /* of segments that get a price; NULL: any */
    smg_arena *kept_in;  /* where the cache's segments are */
    smg_arena *scratch;  /* of the segment that is tried */
    smg_arena *fitting;  /* of the program that is fitted to one of its schedules */
    /* Where sums of the graph that was given are in parts (plan_split.c), else NULL: */
    const smg_node_id *origin; /* per node: that graph's node of the same value, -1 */
    /* Per node: sums of parts that come together have one number, n, sums of all that they make -n; others 0. */
    const int *together;
    const int *merges;    /* per node: it sums up parts of that number; others 0 */
    int groups;           /* such numbers */
    const bool *in_parts; /* per node: of kernels with sums in parts */
    const bool *begins;   /* per node: kernels without parts began with it */
    bool parted;          /* parts are no kernel with what sums them up */
    const char **note;    /* per node: why it is in parts, or NULL */
    const bool *only;     /* per node: belongs to the order, however little of the graph that is; NULL: all do */
    double most;          /* what the list may cost; of one that costs more nothing but that is known. 0: any */
    smg_map *dear;        /* plan_places -> any: no use as a kernel in other numbers of parts; NULL: nobody asks */
} planner;

/* Places of an order of so many nodes. */
typedef struct plan_places {
    int from, to, nodes;
} plan_places;

/* Of the order up to here. */
typedef struct plan_choice {
    double cost;
    int from; /* start of the last segment */
    const segment *segment;
    int open;      /* start of the segments that run at a time with the last one: none reads what another one makes */
    double beside; /* seconds that segments up to here take beside the one before them */
    int64_t least; /* of all ways to cut up to here, the fewest bytes that live between kernels at a time */
    double alone;  /* seconds of the nodes up to here as kernels of their own; where a gain is asked for */
    int reach;     /* end of the longest possible segment of several nodes that begins here; 0: there is none */
} plan_choice;
/* A list cut into segments. */
typedef struct partition {
    plan_choice *best;
    int *ends; /* of each segment in the order */
    int count;
    double cost;  /* of all, where masks leave out what they may be expected to */
    int64_t live; /* bytes of values between its kernels at a time; of one that is over the limit the least */
    bool over;    /* none keeps to the limit: there are no ends */
    int64_t limit;
    smg_breadth breadth;
    smg_moves moves;
} partition;
/* plan_floor.c: seconds of places of the order, which no kernels of them take less than. */
typedef struct plan_floor {
    double *work; /* up to each place: of multiply-adds alone */
    double *rest; /* from each place to the order's end: of all, however that is cut */
} plan_floor;
/* Nothing hangs on places, so that no kernel leaves steps of a loop, or rows, out. */
bool plan_takes_all(const smg_graph *g);
smg_status plan_floor_make(const planner *p, plan_floor *out);
/* Bytes of what the places [from, to) leave for others. */
double plan_left_bytes(const planner *p, int from, int to);
/* Of these places, and of what passes from them to those behind. */
double plan_floor_of(const planner *p, const plan_floor *floor, int from, int to);
/* plan_beside.c: what the nodes [from, to) find where the segment `before` ends. */
typedef struct plan_room {
    bool at_a_time; /* no barrier stands between them */
    double seconds; /* of that segment that they may take, at most */
    int open;       /* as in plan_choice */
} plan_room;
plan_room plan_room_beside(const planner *p, int from, int to, const plan_choice *before);
/* Of these, what a segment takes; less than nothing where it is better off alone. */
double plan_taken_beside(const planner *p, const segment *before, const segment *s, plan_room room);
/* plan_graph.c: a graph in the making: that of `g` without nodes and outputs, and then its outputs; now[id]: the node
 * that node `id` of `g` has become. */
void plan_begin_graph(const smg_graph *g, smg_arena *arena, smg_graph *out_graph);
smg_status plan_copy_outputs(const smg_graph *g, const smg_node_id *now, smg_graph *to);
/* plan_make.c: the prepare list (p->preparing) or the run list. */
smg_status plan_choose_list(planner *p, bool preparing, partition *out);
/* The order at hand as segments; p->again: it is another one now. Where there is a budget, nodes that have no kernel
 * alone may have one with others. */
smg_status plan_cut(planner *p, partition *out);
/* Is the one to be taken rather than the other? */
bool plan_comes_first(const planner *p, const partition *one, const partition *other);
/* plan_moves.c: another order and its partition where some that are not contiguous in this one are cheaper. */
smg_status plan_search_moves(planner *p, partition *io);
/* What a segment costs, by the objective. */
double plan_cost_of(const planner *p, const segment *s);
/* plan_split.c: another planner and its partition where sums in parts are cheaper, or were measured to be faster, else
 * those that are given. Tells the plan what was tried. */
smg_status plan_split_sums(planner **io_p, partition *io_partition, smg_plan *plan);
/* plan_segment.c: what was measured of these nodes as one kernel or of their sums in parts; NULL: nothing that plans
 * are made by. */
const smg_cut *plan_find_cut(const planner *p, uint64_t at, bool parts);

/* plan_limits.c: what the options allow of the run list. */
int plan_longest(const planner *p);                    /* nodes of a segment at most */
int plan_most_products(const planner *p);              /* of a segment */
int plan_products(const planner *p, int from, int to); /* among the nodes [from, to) of the order */
smg_status plan_limit(planner *p, partition *out);
/* May these nodes, which are possible as one kernel, be one? Keeps account of out->least on the way. */
bool plan_is_allowed(const planner *p, partition *out, int from, int to, const segment *s);
/* Is there another limit, now that a cut was looked for: the least that any needs, or what pressure makes of it? */
bool plan_limit_again(const planner *p, partition *out);
/* Is there no way to cut that leaves only what buffers hold? From now on any will do: runs of fewer rows still fit. */
bool plan_lift_limit(planner *p, const partition *of);
/* Are parts of sums and what sums them up among the nodes [from, to) of the order? */
bool plan_joins_parts(const planner *p, int from, int to);
/* Why the nodes are not to be one kernel, as a line; false: nothing speaks against it. */
bool plan_tell_limit(const planner *p, const partition *of, int from, int to, const segment *s, smg_text *why);
smg_status plan_over_limit(const planner *p, int64_t least);

/* plan_lives.c: values between kernels, in bytes at the sizes that prices are for. Outputs and constants do not count.
 * */
int64_t plan_bytes_of(const planner *p, smg_node_id id);
smg_status plan_mark_lives(planner *p); /* fills p->lives */
/* While a kernel of the segment runs: what was made before and is read from here on, and what it makes for others. */
int64_t plan_live(const planner *p, int from, int to);
/* The place of a value that the segment leaves to others and that no buffer holds; -1. */
int plan_oversized(const planner *p, int from, int to);

/* plan_report.c: fills in what the options ask for, of the run list. */
smg_status plan_report(planner *p, const partition *of, smg_plan *plan);

/* plan_prepare.c: fills p->prepared. */
smg_status plan_mark_prepared(planner *p);

/* Is `id` a conversion between types of which memory has one? What would be stored lies there already. */
bool plan_stores_the_same(const planner *p, smg_node_id id);
/* The order of the prepare list (p->preparing) or of the run list. */
smg_status plan_order(planner *p);
/* Places and last uses of p->order; live: of smg_graph_mark_live. */
void plan_mark_places(planner *p, const bool *live);
/* Times that a kernel may ask for one element of what it computes anew: passes, blocks of the other side. */
#define PLAN_ANEW_PASSES 4.0
/* plan_inside.c, after plan_mark_lives: per place, does no cut pay there? And how many of these. */
smg_status plan_mark_inside(const planner *p, bool **out_inside, int *out_count);
/* plan_inline.c: fills p->inlined. */
smg_status plan_mark_inlined(planner *p);
/* These are computed anew by who reads them, or not any more. */
void plan_set_anew(planner *p, const smg_node_id *nodes, int count, bool anew);
/* Of the value, at the sizes that prices are for. */
double plan_elements(const planner *p, smg_node_id id);
/* What `id` computes anew gets kernels of its own; false when it computes nothing anew. */
bool plan_give_kernels(planner *p, smg_node_id id);
/* For p->map_cost. */
double plan_map_cost(const planner *p, smg_exprs *exprs, const smg_node *n);
/* Adds what `count` nodes compute anew; the new count, -1 when there are too many. */
int plan_add_inlined(const planner *p, smg_node_id *io_nodes, int count);
/* Nodes [from, to) of the order and what they compute anew as a sorted list, needed[] set. The list has room for
 * PLAN_MAX_MEMBERS; the result is their number, or -1 when there are too many. */
int plan_members(planner *p, int from, int to, smg_node_id *out_nodes);
/* plan_segment.c: the segment of nodes [from, to) of the order, and what is known of it. */
smg_status plan_segment(planner *p, int from, int to, const segment **out_segment);
/* May a segment be left without a price that is not to be taken? Not where somebody asks for it, or what it costs hangs
 * on more than its price. */
bool plan_is_bounded(const planner *p);
/* The same where only a price of at most so many seconds is of use: what is far from it has segment->least instead, and
 * is not possible, unless the planner is not bounded or its objective is not time. */
smg_status plan_segment_within(planner *p, int from, int to, double seconds, const segment **out_segment);
/* plan_repeat.c: equal bodies from there on, of so many nodes each; count 0: there are none. */
smg_status plan_find_repeat(const planner *p, int from, smg_arena *arena, int *out_length, smg_srepeat *out_repeat);
/* The segment of these, up to *out_to; NULL: there are none. */
smg_status plan_repeated_segment(planner *p, int from, int *out_to, const segment **out_segment);
/* Sets p->hash and p->hash_at of the node. */
void plan_hash_node(const planner *p, smg_node_id id);
/* Of the structure of these nodes, p->needed included; hash: one of the two. */
uint64_t plan_hash_nodes(const planner *p, const uint64_t *hash, const smg_node_id *nodes, int count);
/* plan_step.c: lowers the chosen schedule of a segment into the plan's arena. */
smg_status plan_lower(planner *p, int from, int to, const segment *s, smg_text *why, smg_pstep *out_step);
/* Adds to the step what the options ask for of other schedules of the segment. */
smg_status plan_add_rivals(planner *p, int from, int to, const segment *s, smg_pstep *step);
/* And how this one was found: the segment is tried once more. */
smg_status plan_add_search(planner *p, int from, int to, const segment *s, smg_pstep *step);
/* plan_search.c: what happens to schedules and shapes of blocks, for p->record; nothing without one. */
smg_status plan_record_tried(planner *p, uint64_t choice, const smg_schedule *s, double guess, const char *refused,
                             const smg_price *price);
smg_status plan_record_crowded(planner *p, const char *why);
void plan_record_left(planner *p, int generated, const double *guess, int count);

/* Workgroups of the core that has most to do, where cores have few and loops are unequally long: how long theirs are in
 * shares of the mean, the longest first. count 0: that is not so. */
#define PLAN_UNEVEN 8
typedef struct plan_uneven {
    int count;
    double share[PLAN_UNEVEN];
} plan_uneven;
/* plan_uneven.c */
plan_uneven plan_find_uneven(const smg_kernel *k, const smg_target *t, const int64_t *symbols);

/* What plan_count.c counts: of one workgroup, with all its loops, in the mean. */
typedef struct plan_counts {
    double lanes, workgroups;
    double slots;                       /* of all lanes */
    double near;                        /* bytes that pass between lanes and the memory near them */
    double wait;                        /* seconds that a workgroup waits when it is alone */
    double ahead;                       /* seconds that slices take which are fetched ahead */
    double hiding;                      /* that the workgroup's products take meanwhile, when it is alone */
    double barriers, subgroup_barriers; /* of the workgroup; of one subgroup alone */
    double turns;                       /* reads of memory one after the other, each what a lane has room for */
    double rounds;                      /* k of products, by groups that are read together */
    bool staged;                        /* products' factors do not come as they lie, or by matrices */
    bool widened;                       /* they come as they lie, and are made wider */
    bool matrices;                      /* some product is made by matrices */
    double traffic;                     /* bytes that all workgroups ask for */
    double hidden;                      /* of these, what is fetched several rounds before it is needed */
    double streamed;                    /* of these, what lanes read that multiply it, when they need it */
    double afar;                        /* bytes of tensors that no cache holds, from memory */
    double memory;                      /* bytes that reach device memory, of all, each access by itself */
    double moved;                       /* the same where the cache keeps what several accesses read */
    double stored;                      /* bytes of results, of all */
    double flops;                       /* useful, x2, of all */
    plan_uneven uneven;
} plan_counts;

/* Slots that all targets take alike. An element of 16 bits that becomes a float takes one, and so does one that a loop
 * moves and nothing loads. */
#define PLAN_PUT 2.0   /* a store to shared memory, and its address */
#define PLAN_JOIN 12.0 /* one sum joined: left, read, added */

#define PLAN_WORD 4.0
#define PLAN_NEAR_RUN 128.0       /* bytes side by side that the memory near a core hands out at a time */
#define PLAN_ON_THEIR_WAY 32.0    /* elements that a lane has room for before it needs the first */
#define PLAN_VIEW_ON_ITS_WAY 64.0 /* bytes of a factor that it reads before it multiplies */
#define PLAN_VECTOR_SUMS 16.0 /* that vector registers hold beside the factors; more pass through memory for every k */

/* Bytes side by side: that neighbouring lanes ask for at once, and a workgroup soon. */
typedef struct plan_runs {
    double lanes, group;
} plan_runs;
extern const plan_runs plan_whole_runs; /* also of what all lanes share */

/* As fmin and fmax, of which each is a call: prices ask millions of times. What is no number counts as none. */
static inline double plan_lesser(double a, double b) {
    return a < b || isnan(b) ? a : b;
}
static inline double plan_larger(double a, double b) {
    return a > b || isnan(b) ? a : b;
}

/* A view that a workgroup reads or writes. */
typedef struct plan_bytes {
    double tile;    /* elements, each time */
    double whole;   /* bytes of all of it */
    double element; /* bytes */
    double trips;
    double fresh; /* of these, what brings elements that the workgroup has not had before */
    plan_runs run;
    bool again; /* what is read more than once comes from the core's own cache */
} plan_bytes;
void plan_add_bytes(plan_counts *counts, const smg_target *t, plan_bytes bytes);
/* More of memory's time, as a share, where cores take parts of one line each. */
double plan_split_lines(const smg_target *t, plan_runs run);
/* kept: the share of its axis that a range has which memory decides. */
void plan_count(const smg_kernel *k, const smg_target *t, const int64_t *symbols, double kept, plan_counts *out_counts);
/* plan_steps.c: of a loop, and those that its range leaves in the mean of the program's workgroups; kept: as above. */
double plan_all_steps(const smg_kernel *k, const int64_t *symbols, const smg_instr *loop);
double plan_mean_steps(const smg_kernel *k, const int64_t *symbols, double kept, const smg_instr *loop);
/* Does the loop's range hang on the axis? */
bool plan_range_moves(const smg_kernel *k, const smg_instr *loop, int axis);
/* The share of an axis's steps that the program's loops over it have. */
double plan_share(const smg_kernel *k, const int64_t *symbols, int axis);
/* The share that no tiles leave less of; 0 where memory decides. Sets all tiles to 1. */
double plan_least_share(smg_kernel *k, const int64_t *symbols, int axis);
/* Seconds of a kernel that counts so much and needs so many registers and shared bytes. */
double plan_seconds(const smg_target *t, const plan_counts *counts, const smg_price *needs);
/* Of two times beside each other: an exponent of 1 adds them up, a large one takes the larger. */
double plan_norm(double a, double b, double exponent);
/* Lanes that a core runs at a time. */
double plan_width(const smg_target *t);
/* The share of a subgroup's waits inside a workgroup of so many lanes that no other subgroup fills. */
double plan_share_alone(const smg_target *t, double lanes);
/* Seconds after which a slice that was fetched ahead is there, wherever it comes from. */
double plan_longest_wait(const smg_target *t);
/* Seconds that so many slots of one workgroup take when it has its core for itself. */
double plan_alone(const smg_target *t, const plan_counts *counts, double slots);

/* plan_matrix.c: one step of k of a product by matrices; so many of them behind and beside each other a subgroup. */
typedef struct plan_matrices {
    int rows, cols, depth; /* of one */
    double rate;           /* flop/s */
    double down, across;
    double subgroups;
    bool left_held, right_held; /* in registers: that factor has been counted where it was read */
} plan_matrices;
typedef struct plan_round {
    double slots, near; /* of a workgroup */
} plan_round;
/* So many elements of factors are read from shared memory as matrices. */
plan_round plan_matrix_reads(const smg_target *t, double elements);
plan_round plan_matrix_round(const smg_target *t, const plan_matrices *m);
double plan_matrix_rate(const smg_target *t, int rows, int cols, int depth, smg_type type);

/* Has the target that many shared bytes and registers? */
bool plan_has_room(const smg_target *t, const smg_price *needs, const char **out_refused);
/* Shared bytes and registers of a program; false when it breaks a limit, with the reason. */
bool plan_fits(const smg_kernel *k, const smg_target *t, smg_price *price, const char **out_refused);
/* Adds to these what the program takes at nominal sizes, once it is decided what is written out. */
void plan_price(const smg_kernel *k, const smg_target *t, const int64_t *symbols, smg_price *price);
/* Its seconds where ranges that memory decides have this share of their axes, in the mean. */
double plan_expect(const smg_kernel *k, const smg_target *t, const int64_t *symbols, double kept,
                   const smg_price *needs);

/* plan_ends.c: do masks have ends? */
bool plan_has_ends(const smg_graph *g);
/* The share of a row's keys that masks with an end may be expected to keep. */
double plan_kept(const smg_graph *g, const int64_t *symbols);
/* The graph whose masks have no ends; nodes keep their numbers. NULL: no memory. */
const smg_graph *plan_without_ends(const smg_graph *g, smg_arena *arena);

/* plan_outline.c: what all schedules of a space have in common. extents: of its axes at nominal sizes. */
typedef struct plan_outline plan_outline;
smg_status plan_outline_make(const planner *p, const smg_space *space, const int64_t *extents, smg_arena *arena,
                             plan_outline **out_outline);
/* Loops over the axis have this share of its steps in the mean, and are as uneven. */
void plan_outline_share(plan_outline *outline, int axis, double share, const plan_uneven *uneven);
/* plan_rank.c */
/* Has a program of this schedule room on the target, as far as can be told without it? If not, why. */
bool plan_may_fit(const plan_outline *outline, const smg_schedule *schedule, const char **out_refused);
/* Seconds, roughly; infinite where it has none. */
double plan_guess(const plan_outline *outline, const smg_schedule *schedule);

/* plan_schedules.c: the schedules of a space that have room, and what guesses about them ask. */
typedef struct plan_found {
    smg_schedules schedules;
    plan_outline *outline[SMG_SPACE_FORMS]; /* of the space in each form that has schedules; NULL: it has none */
    const char *refused;                    /* why some have no room; NULL: all have */
} plan_found;
smg_status plan_find_schedules(planner *p, const smg_space *space, const int64_t *nominal, smg_arena *arena,
                               plan_found *io_found);
/* Adds those of the space in its other forms, where they may pay. */
smg_status plan_find_forms(planner *p, const smg_space *space, const int64_t *nominal, smg_arena *arena,
                           plan_found *io_found);

#endif
