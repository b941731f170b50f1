/* target: what the compiler may know about a device.
 *
 * Takes:    a text file (key = value lines), or facts queried and measured by vulkan/.
 * Gives:    smg_target, plain data with the origin of every fact.
 * Promises: planning with the same target gives the same plan, with or without the device.
 * Does not: call Vulkan.
 */
#ifndef SMG_TARGET_H
#define SMG_TARGET_H

#include "base/base.h"
#include "layout/layout.h"

/* Where a fact comes from; unknown means the careful value was assumed. */
typedef enum smg_fact_origin {
    SMG_FACT_ASSUMED = 0,
    SMG_FACT_TABLE,
    SMG_FACT_QUERIED,
    SMG_FACT_MEASURED,
    SMG_FACT_FITTED /* a rate that prices of measured kernels come out best with */
} smg_fact_origin;

typedef enum smg_device_type {
    SMG_DEVICE_OTHER = 0,
    SMG_DEVICE_INTEGRATED,
    SMG_DEVICE_DISCRETE,
    SMG_DEVICE_VIRTUAL,
    SMG_DEVICE_CPU
} smg_device_type;

/* One product of cooperative matrices of a subgroup, m x k times k x n (types as smg words: "f16", "f32", "i8"...):
 * c is what is added, result what comes out. */
typedef struct smg_matrix_shape {
    int m, n, k;
    char a[8], b[8], c[8], result[8];
    double rate; /* flop/s of products alone, all operands at hand; 0: not known */
} smg_matrix_shape;

typedef enum smg_matrix_use {
    SMG_MATRIX_A,
    SMG_MATRIX_B,
    SMG_MATRIX_ACCUMULATOR, /* c and result */
    SMG_MATRIX_USES
} smg_matrix_use;

/* Axes of a fragment's layout. */
enum { SMG_FRAGMENT_ROW, SMG_FRAGMENT_COLUMN };

/* Where a subgroup keeps the elements of one type of matrix: registers are the numbers of elements in an invocation,
 * lanes the invocations. A type that has none for a subgroup's size is opaque: nobody knows which element is where. */
typedef struct smg_fragment {
    smg_matrix_use use;
    int rows, columns;
    char type[8];
    smg_layout layout; /* axes SMG_FRAGMENT_ROW, SMG_FRAGMENT_COLUMN, in this order */
    smg_fact_origin from;
} smg_fragment;

#define SMG_MAX_MATRIX_SHAPES 64
#define SMG_MAX_FRAGMENTS 64

#define SMG_REGISTERS_ANY 1048576 /* more than any workgroup has */

/* X(type, field, careful value, unit, what): integer and real facts, in the order they are printed. */
#define SMG_TARGET_FACTS(X)                                                                                            \
    X(int64_t, shared_bytes, 16384, "B", "shared memory of one workgroup")                                             \
    X(int64_t, max_invocations, 128, "", "invocations of one workgroup")                                               \
    X(int64_t, max_size_x, 128, "", "workgroup size in x")                                                             \
    X(int64_t, max_grid_x, 65535, "", "workgroups in x")                                                               \
    X(int64_t, max_grid_y, 65535, "", "workgroups in y")                                                               \
    X(int64_t, max_grid_z, 65535, "", "workgroups in z")                                                               \
    X(int64_t, subgroup_min, 1, "", "smallest subgroup size")                                                          \
    X(int64_t, subgroup_max, 128, "", "largest subgroup size")                                                         \
    X(int64_t, subgroup_size, 1, "", "subgroup size kernels are built for; 1: not relied on")                          \
    X(int64_t, subgroup_selectable, 0, "", "1: a required size and full subgroups can be set")                         \
    X(int64_t, subgroup_arithmetic, 0, "", "1: reductions in subgroups of compute shaders")                            \
    X(int64_t, subgroup_clustered, 0, "", "1: clustered reductions")                                                   \
    X(int64_t, subgroup_shuffle, 0, "", "1: shuffles, xor shuffles")                                                   \
    X(int64_t, max_bindings, 4, "", "storage buffers of one stage")                                                    \
    X(int64_t, max_buffer_range, 134217728, "B", "one storage-buffer binding")                                         \
    X(int64_t, max_allocation, 1073741824, "B", "one memory allocation")                                               \
    X(int64_t, buffer_alignment, 256, "B", "alignment of a storage-buffer offset")                                     \
    X(int64_t, max_push_bytes, 128, "B", "push constants")                                                             \
    X(int64_t, fp16, 0, "", "1: 16-bit float arithmetic")                                                              \
    X(int64_t, storage16, 0, "", "1: 16-bit storage buffers")                                                          \
    X(int64_t, storage8, 0, "", "1: 8-bit storage buffers")                                                            \
    X(int64_t, int8, 0, "", "1: 8-bit integer arithmetic")                                                             \
    X(int64_t, buffer_addresses, 0, "", "1: shaders read buffers by 64-bit addresses")                                 \
    X(int64_t, nan_preserve, 0, "", "1: signed zero, inf and nan are preserved for 32-bit floats")                     \
    X(int64_t, cores, 1, "", "compute units (workgroups run at once, at least one each)")                              \
    X(int64_t, core_lanes, 1536, "", "invocations that one compute unit switches between")                             \
    X(int64_t, registers_lane, 64, "", "32-bit registers of one invocation before spilling")                           \
    X(int64_t, registers_ahead, 1048576, "", "32-bit registers that a product written out may load factors into")      \
    X(int64_t, spills_lane, 33, "", "spilled registers of one invocation from which on other schedules are planned")   \
    X(int64_t, registers_core, 16384, "", "32-bit registers of one compute unit")                                      \
    X(int64_t, registers_kept, SMG_REGISTERS_ANY, "", "32-bit registers of one workgroup that stay across a barrier")  \
    X(int64_t, shared_core, 16384, "B", "shared memory of one compute unit")                                           \
    X(int64_t, cache_bytes, 1048576, "B", "last-level cache")                                                          \
    X(int64_t, slots, 1, "", "slots that are tried for slices in shared memory; 1: none")                              \
    X(double, bandwidth, 2e10, "B/s", "global memory, large working set")                                              \
    X(double, cache_bandwidth, 4e10, "B/s", "last-level cache, small working set")                                     \
    X(double, fma_rate, 1e11, "flop/s", "32-bit fused multiply-adds, counted as two")                                  \
    X(double, near_bytes, 1, "B", "shared memory that a core reads in the time of one lane's multiply-add")            \
    X(double, pair_rate, 1, "", "multiply-adds of f16 in pairs, for one of 32 bits")                                   \
    X(double, dispatch_cost, 5e-6, "s", "one dispatch with a barrier behind it")                                       \
    X(double, barrier_cost, 2e-7, "s", "one workgroup barrier")                                                        \
    X(double, subgroup_barrier_cost, 2.5e-8, "s", "one barrier of a subgroup alone")                                   \
    X(double, load_latency, 5e-7, "s", "a load from global memory that somebody waits for")                            \
    X(int64_t, code_budget, 8192, "", "operations of one kernel that the driver builds in about a second")             \
    X(double, max_dispatch_time, 0.5, "s", "budget of one dispatch (watchdogs end at about 2 s)")

/* What prices of kernels count that no rate tells: costs.def. */
typedef struct smg_costs {
#define SMG_COST_ROW(field, switching, spreading, least, what) double field;
#include "target/costs.def"
#undef SMG_COST_ROW
} smg_costs;

typedef struct smg_cost_origins {
#define SMG_COST_ROW(field, switching, spreading, least, what) smg_fact_origin field;
#include "target/costs.def"
#undef SMG_COST_ROW
} smg_cost_origins;

typedef struct smg_target {
    char name[128];   /* the device's own name, or the file's */
    char driver[128]; /* driver name and version */
    uint8_t uuid[16]; /* driver/pipeline-cache UUID; zero when made from a file */
    smg_device_type type;
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what) ctype field;
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what) smg_fact_origin field##_from;
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
    smg_costs costs;
    smg_cost_origins costs_from;
    int matrix_count;
    smg_matrix_shape matrix[SMG_MAX_MATRIX_SHAPES];
    int fragment_count;
    smg_fragment fragments[SMG_MAX_FRAGMENTS];
    int64_t revision; /* of rates that were fitted; 0: none were */
} smg_target;

/* Rates and costs that are fitted to what kernels take (target_rates.c). */
typedef enum smg_rate {
    SMG_RATE_ARITHMETIC, /* fma_rate */
    SMG_RATE_MATRICES,   /* of all shapes, by one factor */
    SMG_RATE_MEMORY,     /* bandwidth */
    SMG_RATE_CACHE,      /* cache_bandwidth */
    SMG_RATE_LATENCY,    /* load_latency */
    SMG_RATE_DISPATCH,   /* dispatch_cost */
    SMG_RATE_BARRIER,    /* barrier_cost, and a subgroup's by the same factor */
#define SMG_COST_ROW(field, switching, spreading, least, what) SMG_RATE_COST_##field,
#include "target/costs.def"
#undef SMG_COST_ROW
    SMG_RATES
} smg_rate;
enum { SMG_RATES_MEASURED = SMG_RATE_BARRIER + 1 }; /* by calibration: the first ones; the others are costs */

/* Every fact at its careful value, origin ASSUMED. */
void smg_target_init(smg_target *target);
/* Text form: one `key = value  # origin` line a fact, `name`, `type`, and lines like
 *     matrix = 16x16x16 f16 f16 f32 f32 6.25e14     (the rate may be missing)
 *     fragment = a 16x16 f16 registers column*2 column*2:8 row*2:8 lanes column*4:2 row*8  # table
 * (uses are a, b, accumulator; the layout as smg_layout_print writes it), and `revision` of fitted rates. A cost's key
 * is `cost.` and its name in costs.def; what is not given is what its kind of core is assumed to take. Unknown
 * keys, nonsense limits (zero, negative, subgroup_size > max...) and layouts that are not of their matrix are FORMAT.
 */
smg_status smg_target_parse(smg_context *ctx, const char *text, const char *where, smg_target *out_target);
void smg_target_print(const smg_target *target, smg_text *text);
/* The type, the facts that are not assumed, and the matrices, in the same form. */
void smg_target_print_given(const smg_target *target, smg_text *text);
/* target_needs.c: is each fact that `needs` gives at least that good on the device, each of its matrices there and each
 * of its fragments laid out the same? What is not is added to `missing` (may be NULL), parts with commas between. Rates
 * and costs are no needs. */
bool smg_target_meets(const smg_target *device, const smg_target *needs, smg_text *missing);
/* Part of the names of devices that the built-in target of this name is for; "" where there is none. */
const char *smg_target_match(const char *name);
/* Built-in targets by name ("careful", "lavapipe", "h200", "navi31", "dg2", "adreno740", "m1", ...);
 * NOT_FOUND lists the names. */
smg_status smg_target_named(smg_context *ctx, const char *name, smg_target *out_target);
/* Assumed facts take the values of the built-in row whose `match` is part of the target's name (core counts, registers,
 * caches, rates and layouts of its matrices: what no driver tells), then the rows of quirks.def that match the name and
 * the driver correct what a driver is known to report or do wrongly. */
smg_status smg_target_apply_tables(smg_context *ctx, smg_target *target);
/* Where lanes of a subgroup of so many take the sums of an opaque matrix of the shape from shared memory: short runs of
 * a row, then columns over lanes, then rows. false: there are fewer sums than lanes, or sides are no powers of two. */
bool smg_matrix_dealt(const smg_matrix_shape *shape, int64_t lanes, smg_layout *out_layout);
/* The layout of one operand of the shape in subgroups of the size that kernels are built for; NULL: opaque. */
const smg_layout *smg_target_fragment(const smg_target *target, const smg_matrix_shape *shape, smg_matrix_use use);
/* Are they the same product? Rates may differ. */
bool smg_matrix_same_shape(const smg_matrix_shape *a, const smg_matrix_shape *b);
/* One operand of the shape, without a layout. */
smg_fragment smg_matrix_operand(const smg_matrix_shape *shape, smg_matrix_use use);
/* Are they operands of one type of matrix, wherever its elements are? */
bool smg_fragment_same_matrix(const smg_fragment *a, const smg_fragment *b);
int64_t smg_fragment_lanes(const smg_fragment *fragment); /* of the subgroups that its layout is for */
/* Takes the layout, with its axes in their order; false: it is not one of rows x columns in one subgroup. */
bool smg_fragment_set_layout(smg_fragment *fragment, const smg_layout *layout);
/* Forgets what is known of matrices that are no operand of any of the target's shapes. */
void smg_target_keep_operands(smg_target *target);
/* "8x8x16 f16 f16 f32 f32". */
void smg_matrix_print(const smg_matrix_shape *shape, smg_text *text);
/* "a", "b", "accumulator". */
const char *smg_matrix_use_word(smg_matrix_use use);
/* The fact's key; "matrix" for all shapes. */
const char *smg_rate_word(smg_rate rate);
/* Of matrices the highest; 0: the target has none that is known. */
double smg_target_rate(const smg_target *target, smg_rate rate);
/* Where it is from; of matrices where arithmetic's is. */
smg_fact_origin smg_target_rate_from(const smg_target *target, smg_rate rate);
/* A cost's least value that makes sense; 0 of rates. */
double smg_rate_least(smg_rate rate);
/* Makes it a fitted one. */
void smg_target_scale_rate(smg_target *target, smg_rate rate, double factor);
/* Fitted facts, rates of matrices and the revision are those of `from`. */
void smg_target_take_fitted(smg_target *target, const smg_target *from);
/* "assumed", "table", "queried", "measured", "fitted". */
const char *smg_target_origin_word(smg_fact_origin origin);
/* Refuses impossible limits with the numbers. */
smg_status smg_target_verify(smg_context *ctx, const smg_target *target);
/* Bytes of the largest buffer that one binding reaches whole, a multiple of 16. */
int64_t smg_target_largest_buffer(const smg_target *target);
/* "cpu", "discrete", ...: what a user may say for a device, too. */
const char *smg_device_type_word(smg_device_type type);
/* Loads take so long that it pays to arrange work around them: fetching ahead, several lanes a sum, unrolling. */
bool smg_target_hides_loads(const smg_target *target);
/* Do so many sums of a lane take a quarter of its registers or more? They read little for each k. */
bool smg_target_many_sums(const smg_target *target, int64_t sums);
/* Multiply-adds of a lane around so many sums that are written out at most: two for each of its registers, four around
 * many sums, where what is read ahead has room even when a slice is written out whole, and where a loop costs the most
 * (measured at 4x4 to 16x8 sums a lane, bench/NOTES.md). */
int64_t smg_target_most_written(const smg_target *target, int64_t sums);
/* Is f16 arithmetic in pairs faster than that of 32 bits? */
bool smg_target_pairs(const smg_target *target);
/* A core has more lanes at hand than one subgroup: while some wait, it runs others. Where not (a CPU, whose lanes are
 * the elements of a vector register), nothing overlaps a wait and one workgroup runs at a time. */
bool smg_target_switches_lanes(const smg_target *target);
/* Are 16 bits of each lane moved as easily as 32? Not where lanes are the elements of a vector register: instructions
 * gather and scatter words there, and of halves drivers move one lane's after the other. */
bool smg_target_moves_halves(const smg_target *target);
/* Assumed facts take what the given ones say: shared memory, registers and lanes of a core, latency of a CPU's loads.
 * For whoever fills a target by hand; parsing does it. */
void smg_target_settle(smg_target *target);
/* Hash over everything that changes a plan. */
uint64_t smg_target_hash(const smg_target *target);

#endif
