/* kernel: one fused kernel as a short program over tiles (the kernel IR).
 *
 * Takes:    a program, built by lower/ or read from text.
 * Gives:    a tile program with text form, verifier and CPU interpreter.
 * Promises: the program says everything that decides the result: bounds, barriers, validity of every
 *           lane; the interpreter runs exactly what glsl/ writes out.
 * Does not: know GLSL; choose tiles.
 *
 * The model. A workgroup has `lanes` invocations, subgroups of `subgroup` behind each other. A tile spans axes of the
 * kernel, each with its own static tile extent. Where the elements of a REGISTER tile are says its layout
 * (layout/layout.h; its axes are the kernel's): the register, lane and subgroup of each. A layout may span more than
 * the tile: what is behind the tile's end is no element. An instruction reads an element of a register tile in the lane
 * that works on it: the layouts must be readable beside each other. A SHARED tile is row-major in its axes' order, the
 * last axis padded by `pad` elements, seen by the whole workgroup; writing it ends the others of its `memory`. It may
 * have `slots`, one behind the other: step s of the loop over its `ring` uses slot s mod slots, and what fills it may
 * work for a later step (`ahead`). Or it is a slice of another shared tile, and no memory of its own. A STAGING tile is
 * in registers too, but on its way from global to shared memory: its elements, flattened in its axes' order, are dealt
 * out over all invocations, and only PUT reads it. A VIEW is no memory of the workgroup at all: its elements stay where
 * an access says (0 where invalid), and only MMA reads it. An EXCHANGE tile is words of shared memory that lanes leave
 * for each other: register by register one for each unit (smg_exchange).
 *
 * A kernel may multiply by matrices: a subgroup makes one product of the shape of `matrix` as a whole. A register tile
 * of `fragments` holds their sums, or a factor of one: its layout is that of whole matrices, side by side, so that
 * everything else reads and writes its elements as those of any other tile. Other factors are shared tiles of the
 * matrix's type, and TAKE loads a factor's matrices from there before a product needs them. Where nobody knows which
 * lane has which sum, the matrix is OPAQUE: a tile of its sums is set to a number, multiplied into, and left in shared
 * memory, matrix by matrix. Its layout says which matrices a subgroup has, and nothing about the elements of one.
 *
 * STAGING tiles and factors in registers may have slots too. A register's number is no variable: the loop over their
 * ring is written out by a multiple of the slots.
 *
 * The base of an axis: GRID axes take it from the workgroup (coordinate * tile), an axis with an open
 * LOOP around takes it from the loop (step * tile), any other is WHOLE: base 0 and tile >= extent.
 * Element i of the tile of axis a is valid when base + i < extent.
 */
#ifndef SMG_KERNEL_H
#define SMG_KERNEL_H

#include "base/base.h"
#include "base/size.h"
#include "layout/layout.h"
#include "op/op.h"

#define SMG_TILE_AXES 6
#define SMG_SLOTS 8 /* of a tile, at most */
#define SMG_ACCESS_AXES 8
#define SMG_KERNEL_SIZES 16 /* at most, that a kernel is told when it runs */

typedef struct smg_kaxis {
    const char *name;
    smg_size extent;
    int64_t tile; /* static elements a tile spans; 1 for plain grid coordinates */
    bool grid;    /* cut over workgroups: ceil(extent / tile) of them */
    bool back;    /* GRID: its last block has the first workgroup */
} smg_kaxis;

typedef enum smg_residence { SMG_REGISTER, SMG_SHARED, SMG_STAGING, SMG_VIEW, SMG_EXCHANGE } smg_residence;

/* What the registers of a tile are of, where they are those of matrices. */
typedef enum smg_fragments {
    SMG_FRAGMENTS_NONE,
    SMG_FRAGMENTS_SUMS,
    SMG_FRAGMENTS_LEFT,
    SMG_FRAGMENTS_RIGHT
} smg_fragments;

typedef struct smg_tile {
    const char *name;
    smg_type type; /* of its elements. F32, I32 or BOOL; SHARED and STAGING tiles of floats also F16 and BF16: what is
                      written is rounded to it, what is read is widened. Tiles of one memory have one type */
    smg_residence residence;
    int axis_count;
    int axis[SMG_TILE_AXES]; /* indices of kernel->axes */
    int layout;              /* REGISTER: of kernel->layouts, over its axes of more than one element; else -1. Before
                                lowering has chosen layouts a kernel has none, and all are -1: such a program is
                                verified, printed and parsed, and has no lanes to run on */
    int pad;                 /* SHARED: elements behind each run of the last axis */
    bool in_runs;            /* SHARED, a factor: its last axis, what is contracted, is in the order that the other
                                factor has where lanes load that by runs (smg_matrix_in_runs). PUT writes it, and TAKE
                                finds whole matrices */
    int access;              /* VIEW: of a buffer of floats that is not written, without an index */
    int words;               /* EXCHANGE: how many of 4 bytes */
    /* REGISTER: of kernel->matrix. All products into SUMS are made by matrices; LEFT and RIGHT are factors of such, to
     * whose type written values are rounded. */
    smg_fragments fragments;
    int slots, ring; /* SHARED, STAGING, LEFT, RIGHT: more than one, and then the axis of the loop whose steps take
                         turns; 0: one */
    /* SHARED: what tile `of`, which has the whole of `along`, has where the loop over `ring` is: its elements are those
     * of the same index along the two, base included. Products read it or take it, and nothing writes it. */
    bool sliced;
    int of, along;
    int memory;       /* SHARED: tiles of one number > 0 lie on the same memory, at different times; 0: its own */
    uint64_t clamped; /* SHARED, STAGING: a bit for each axis along which what is behind the axis's end is its last
                         element once more, where it would be 0. Such a tile is read by an MMA only that does not
                         contract over these axes: its result has nothing but invalid elements from there. STAGING: or
                         by a PUT, which makes 0 of what its dst does not clamp */
} smg_tile;

/* A global view: address = offset + sum(index(axis) * stride) [+ index * index_stride], in elements.
 * An index of SMG_INDEX_ABSENT is no element: a load gives 0 (borders of windows).
 * index(axis) = base + i, the element's coordinate in the whole axis. */
#define SMG_INDEX_ABSENT (-2147483647)
typedef struct smg_access {
    int buffer;
    smg_size offset;
    int axis_count;
    int axis[SMG_ACCESS_AXES];
    smg_size stride[SMG_ACCESS_AXES];
    smg_expr index; /* Indirect: an INT expression over leaves; SMG_EXPR_NONE when there is none */
    smg_size index_stride;
    smg_size index_limit; /* valid indices are [0, limit): others are clamped and reported */
} smg_access;

typedef enum smg_kleaf_kind {
    SMG_KLEAF_TILE, /* element of a tile at the same coordinates (axes it lacks: broadcast) */
    SMG_KLEAF_LOAD, /* element of an access; 0 where any axis of the ACCESS is invalid */
    SMG_KLEAF_IOTA, /* offset + sum(index(axis) * stride) as INT: accesses[] gives the form */
    SMG_KLEAF_SIZE  /* a size as FLOAT or INT */
} smg_kleaf_kind;
typedef struct smg_kleaf {
    smg_kleaf_kind what;
    smg_kind kind; /* of the value */
    int index;     /* tile or access */
    smg_size size; /* SIZE */
    /* TILE: along these axes another element: of a register tile, along axes that are whole and in registers */
    int pick_count;
    smg_layout_pick pick[SMG_LAYOUT_PICKS];
} smg_kleaf;

typedef struct smg_kbuffer {
    const char *name;
    smg_type type;
    smg_size elements;
    bool written;
    int value; /* the graph's node id behind it (plan binds it) */
    /* Several values, one behind the other, each `stride` elements on: their ids, the first of which is `value`. NULL:
     * it is one. */
    const int *each;
    int each_count;
    int64_t stride;
    /* In memory each of its tensors is blocks of so many rows and columns, of rows of `row` elements (a multiple of
     * block[1]); within them row by row, blocks of the same columns one behind the other. Both 0: it lies as it is.
     * Addresses of accesses, and all who compute, count elements as if it did: only where they are in memory is
     * another matter. */
    int block[2];
    int64_t row;
} smg_kbuffer;

/* One host array per buffer, in double; elements is checked against the kernel's size expression. */
typedef struct smg_karray {
    double *data;
    int64_t elements;
} smg_karray;

/* Those of several values, as a buffer has them one behind the other; what lies between is NaN. */
smg_status smg_karray_stack(const smg_kbuffer *buffer, const smg_karray *each, smg_arena *arena, smg_karray *out);

typedef enum smg_instr_kind {
    SMG_I_SET,    /* dst (register) = expr, for every element owned; a factor with slots may be set `ahead` */
    SMG_I_REDUCE, /* dst (register) = [dst (+)] combine over `axes` of expr. The operand ranges over dst's axes
                       and `axes`, distributed as `layout` says: registers of `axes` are combined in the lane, lanes
                       and subgroups with each other, or `apart`: each lane keeps what it has folded, until JOIN.
                       Invalid elements of `axes` count as the combine's identity */
    SMG_I_STAGE,  /* dst (shared) = expr over loads, iotas, sizes and shared tiles, by all
                       invocations together; elements with an invalid coordinate become 0, or as dst is
                       clamped. `axes`:
                       the order in which consecutive invocations walk (last fastest); a permutation
                       of dst's axes */
    SMG_I_FETCH, /* dst (staging) = expr as in STAGE, of the slice of axis `a` that is `ahead`: what a later PUT stores,
                       so that loads are under way while other instructions run. `axes` = dst's */
    SMG_I_PUT,   /* dst (shared) = staging tile `a`, which has dst's axes in the order `axes` */
    SMG_I_SPILL, /* dst (shared) = register tile `a`, same axes in any order; invalid elements of any
                       axis become 0 */
    SMG_I_TAKE,  /* dst (register, LEFT or RIGHT) = shared tile `a`, same axes in any order: each subgroup the matrices
                       that its lanes hold. By wide[0] along what is contracted: by runs of `a`, in the order in which
                       the layout of dst has them */
    SMG_I_MMA,   /* dst (register) += sum over axes[0] of a * b. a: shared or a view, k and some of dst's axes; b:
                       shared or a view, k and others of dst's axes; in any order (runs along k are read as groups); k
                       spans the tile of axes[0]. `layout`: dst's, and which lanes share out k: each adds its part of
                       k to sums of its own, which JOIN adds up */
    SMG_I_JOIN,  /* dst (register) = combine of the parts of the lanes that share out `axes` in `layout`, in all of
                       them, or with a `form` in those of one subgroup: after such an MMA before anything else reads
                       it, or after REDUCE apart. Until then dst is in parts: a SET reads the lane's own, and its
                       result is in parts too, where its elements are in several of those lanes; so does another
                       REDUCE apart */
    SMG_I_LEAVE, /* dst (exchange) = parts of registers [first, first + registers) of register tile `a`: what subgroups
                       have to tell each other about `axes` in `layout`. After JOIN with a form, if lanes share any. Of
                       `matrices`: opaque sums of tile `a`, whole ones, in words that each subgroup has of its own */
    SMG_I_FOLD,  /* dst (exchange): of the words that belong together the first one becomes their combine; who left
                       them share out the registers. Ranges as in the LEAVE before it */
    SMG_I_GATHER, /* dst (register): the same registers = combine of their words in exchange tile `a`, or `folded`, the
                       first of each. With the last registers dst is whole again. With `b`, the tile that was left: dst
                       is another one, and those that hold parts take a share each: of n that were left from f on, of
                       p parts, part i takes i n / p to (i + 1) n / p as dst's from f / p on. Of `matrices`: dst, which
                       has the layout of opaque tile `b`, takes what its subgroup has left of that, or adds it */
    SMG_I_STORE,  /* access `a` = expr; iterates over `axes`, distributed as `layout` says; invalid elements are not
                       stored. Elements replicated over lanes are stored once */
    SMG_I_LOOP,   /* for steps of axes[0]: ... up to the matching END. With a `range` for those that meet it: there may
                       be none */
    SMG_I_END,
    SMG_I_BARRIER /* what lanes of its scope have written to shared memory before is seen by them after; buffers are not
                     put in order */
} smg_instr_kind;

/* Neighbours that are one access of memory: `width` elements along `axis`; width 0: each element is one. */
#define SMG_PAIR 2 /* of 16 bits: a word */
#define SMG_WIDE 4
#define SMG_WIDEST 8 /* of 16 bits: the same bytes */
typedef struct smg_wide {
    int width; /* 0; SMG_PAIR: of what SET loads and STORE writes; SMG_WIDE; or SMG_WIDEST: of what a product reads of a
                  view, of what matrices are made of, and of f16 that is fetched */
    int axis;
} smg_wide;

/* The lanes that a barrier puts in order. */
typedef enum smg_scope {
    SMG_SCOPE_WORKGROUP,
    SMG_SCOPE_SUBGROUP,
    SMG_SCOPE_NONE /* it orders nothing: lowering takes it out */
} smg_scope;

/* How the lanes of a subgroup join. */
typedef enum smg_join {
    SMG_JOIN_OPEN,      /* not decided, and not in one subgroup alone: lowering gives it a form */
    SMG_JOIN_WHOLE,     /* an operation of all lanes of a subgroup */
    SMG_JOIN_CLUSTERED, /* of neighbouring lanes */
    SMG_JOIN_XOR        /* one exchange for each bit of their number */
} smg_join;

/* The elements of its axis that a loop runs over: from the least `from` to below the greatest `to` that any element of
 * the workgroup's tiles gives, where the axes in them stand. INT, of iotas, sizes and loads of integers that the whole
 * workgroup shares: along axes of tile 1, from a buffer that is not written, at most SMG_KERNEL_BOUND_MOST in size
 * (what is greater counts as that, so that no sum overflows). SMG_EXPR_NONE: from the axis's begin, to its end. All
 * lanes run the same steps. */
#define SMG_KERNEL_BOUND_MOST (1 << 30)
typedef struct smg_krange {
    smg_expr from, to;
} smg_krange;

typedef struct smg_instr {
    smg_instr_kind kind;
    int dst;   /* tile; -1 */
    int a, b;  /* tiles (MMA, SPILL, PUT, GATHER), access (STORE) or axis (FETCH); -1 */
    int ahead; /* FETCH along its axis, SET, STAGE, PUT and TAKE into slots along their ring: it works as in the step so
                  many steps on, and not at all where the loop has no such step: a PUT or TAKE may then move what
                  nobody reads. Without an open loop the first step of the next one counts */
    bool last; /* FETCH, SET: where the loop has no such step the slice of its last one is fetched, which nobody uses */
    smg_expr expr;
    smg_combine combine;
    bool accumulate;      /* REDUCE, GATHER of matrices: starts from dst's old value */
    bool apart;           /* REDUCE: lanes do not exchange what they have folded */
    smg_join form;        /* JOIN */
    smg_scope scope;      /* BARRIER */
    bool folded;          /* GATHER */
    int first, registers; /* LEAVE, FOLD, GATHER */
    int unroll;           /* LOOP: 1: each of its (constant) steps is written out, -1: none may be, 0: the driver may,
                        n > 1: n steps one after the other, which the constant number of its steps is a multiple of.
                        MMA: k of a lane that are written out together; 0: as few as operands are read by */
    int terms;  /* MMA: so many products are summed up in f16, each rounded, before their sum is added to dst; 0: none;
                  or SMG_TERMS_OPEN. Factors are f16 tiles, every lane has all k, and columns in runs: pairs of them
                  are one operation */
    int layout; /* REDUCE, STORE, MMA, JOIN, LEAVE, FOLD, GATHER: of kernel->layouts; else -1 */
    /* [0]: of what SET loads, of what STORE, SPILL, STAGE and PUT write, of what FETCH loads; STORE also loads by such
     * groups what is aligned whatever the sizes. MMA: a's, and [1] b's, along k or along rows and columns of one lane.
     * STORE of whole matrices: [1] how those go that do not go as a whole.
     * Where sizes decide whether the groups are aligned, they do so when the kernel runs. */
    smg_wide wide[2];
    /* SET of a factor, STORE, SPILL: whole matrices at once, along wide[0], where all of their elements are valid;
     * elsewhere element by element, or what STORE writes by wide[1]. LEAVE, GATHER: of opaque sums. */
    bool matrices;
    /* STORE: lanes of a subgroup first give each other elements, so that neighbouring lanes store neighbours. */
    bool exchanged;
    /* MMA of views: read by 64-bit addresses that are the same for all lanes of a subgroup: a row's element once for
     * all of them, neighbouring columns by each, which takes its own. SET, REDUCE, STORE: so are the loads of which all
     * lanes read the same element. */
    bool addressed;
    int axis_count;
    int axes[SMG_TILE_AXES];
    const smg_krange *range; /* LOOP: NULL: all steps */
    const char *note;        /* why it is there; printed as a comment */
} smg_instr;

/* What a subgroup multiplies as a whole: rows x depth by depth x cols, added to rows x cols sums of f32. */
typedef struct smg_matrix {
    int rows, cols, depth; /* powers of two; 0: the kernel multiplies by no matrices */
    smg_type type;         /* of the factors */
    bool opaque;           /* nobody knows where lanes have the sums */
    smg_layout sums;       /* where they have them, or opaque ones once these have been in shared memory; axis 0 is the
                              row, axis 1 the column */
    smg_layout left;       /* and a left factor: its rows and k; of no axes: nobody knows */
    smg_layout right;      /* and a right factor: k and its columns */
} smg_matrix;

/* Tiles that are needed at one point of the program, and what runs there if it needs registers beside them (-1). */
#define KERNEL_LIVE_WORDS 4
#define KERNEL_LIVE_TILES (KERNEL_LIVE_WORDS * 64)
typedef struct kernel_live_set {
    uint64_t word[KERNEL_LIVE_WORDS];
} kernel_live_set;
typedef struct kernel_live_point {
    kernel_live_set tiles;
    int beside;
} kernel_live_point;
typedef SMG_ARRAY(kernel_live_point) smg_kernel_live;

/* A run in which `size` is a multiple of `by`. */
#define SMG_KERNEL_EVENS 12
typedef struct smg_even {
    smg_size size;
    int64_t by;
} smg_even;

typedef struct smg_kernel {
    const char *name;
    smg_arena *arena;
    smg_sizes *sizes;
    smg_exprs *exprs;
    int lanes;     /* invocations of a workgroup, a power of two */
    int subgroup;  /* subgroup size the program relies on; 1: none, lanes exchange words */
    bool numbered; /* lanes are known by the number of their subgroup and their number in it */
    smg_matrix matrix;
    int written; /* inner registers of a lane that are written out at most, more are a loop; 0: however many */
    SMG_ARRAY(smg_layout) layouts; /* of tiles and instructions; bits of lanes and subgroups as above */
    SMG_ARRAY(smg_kaxis) axes;
    SMG_ARRAY(int) grid; /* GRID axes, slowest first */
    int64_t band;        /* blocks of the last of them that are gone over for each block of the one before; 0: all */
    SMG_ARRAY(smg_tile) tiles;
    SMG_ARRAY(smg_access) accesses;
    SMG_ARRAY(smg_kleaf) leaves;
    SMG_ARRAY(smg_kbuffer) buffers; /* index = binding */
    SMG_ARRAY(smg_instr) code;
    SMG_ARRAY(smg_even)
    evens;                    /* the kernel has a form for runs in which all of these hold, without the checks that ask
                                  whether a tile of `by` is whole or a group of `by` aligned; empty: no such form */
    SMG_ARRAY(smg_expr) sure; /* conditions that hold in that form, for every element */
    smg_kernel_live live;     /* the points where most is needed (kernel_live.c); empty: all tiles at once */
} smg_kernel;

/* ---- shape of things (kernel_shape.c) ----------------------------------------------------------- */

/* Does the program say where elements are? Before lowering has chosen layouts nothing has one. */
bool smg_kernel_laid_out(const smg_kernel *k);
/* The axis along which the instruction may work `ahead`; -1. */
int smg_instr_ahead_axis(const smg_kernel *k, const smg_instr *instr);
/* Is `a` a tile that the instruction reads? */
bool smg_instr_reads_a(const smg_instr *instr);
/* Where an instruction's elements are: its own layout, or that of the register tile that it goes over. NULL for those
 * that go over no register tile. */
const smg_layout *smg_kernel_layout(const smg_kernel *k, const smg_instr *instr);
/* The axes whose registers the outer loop of an instruction goes over; those of the others are the inner loop. What a
 * lane does for each outer register: fold the reduced axes, read a row of the left factor, begin a row of a map. */
int smg_kernel_outer_axes(const smg_kernel *k, const smg_instr *instr, int out_axes[SMG_LAYOUT_AXES]);
/* Every leaf of the expression, those of the indices of its loads included. */
void smg_kernel_leaves(const smg_kernel *k, smg_expr expr, void (*visit)(void *user, int leaf), void *user);
/* Do they read the same? */
bool smg_kleaf_equal(const smg_kleaf *a, const smg_kleaf *b);
/* The access that the expression loads, where it does nothing else; -1. */
int smg_kernel_plain_load(const smg_kernel *k, smg_expr expr);
/* What the leaf, of a tile, picks along the axis; NULL: its own coordinate. */
const smg_layout_pick *smg_kleaf_pick(const smg_kleaf *leaf, int axis);
/* The layout's number, added where it is new; -1 when memory is out. */
int smg_kernel_add_layout(smg_kernel *k, const smg_layout *layout);
/* A lane's, of 32 bits; 0 for shared. */
int64_t smg_tile_registers(const smg_kernel *k, const smg_tile *tile);
int64_t smg_tile_elements(const smg_kernel *k, const smg_tile *tile); /* of one slot */
int smg_tile_home(const smg_kernel *k, int tile);                     /* whose memory it is on: of a slice its whole */
/* Elements from the whole's first one to the slice's, for a base of 1; 0 for what is no slice. */
int64_t smg_tile_slice_stride(const smg_kernel *k, const smg_tile *tile);
int smg_tile_slots(const smg_tile *tile); /* 1 where it has none */
/* Are the steps of all loops over the axis written out by a multiple of n, so that a step's number mod n is known? */
bool smg_kernel_steps_known(const smg_kernel *k, int axis, int n);
/* May the two lie on one memory, slot on slot? Without slots always. */
bool smg_tiles_slot_alike(const smg_kernel *k, const smg_tile *a, const smg_tile *b);
/* Where a shared tile's elements are: its axes' coordinates times these, behind its slot. Elements from one to the next
 * along the axis (0 where the tile lacks it), of a run of the last axis with its padding, and of a slot. */
int64_t smg_tile_stride(const smg_kernel *k, const smg_tile *tile, int axis);
int64_t smg_tile_run(const smg_kernel *k, const smg_tile *tile);
int64_t smg_tile_slot_elements(const smg_kernel *k, const smg_tile *tile);
bool smg_tile_in_shared(const smg_tile *tile); /* SHARED or EXCHANGE */
smg_kind smg_tile_kind(const smg_tile *tile);
/* The 32-bit type of the kind: what lanes compute with. */
smg_type smg_kind_type(smg_kind kind);
bool smg_tile_has(const smg_tile *tile, int axis);
int smg_tile_last_axis(const smg_tile *tile); /* -1: it has none */
/* The first SET of the tile; NULL. */
const smg_instr *smg_kernel_setter(const smg_kernel *k, int tile);
bool smg_tile_clamps(const smg_tile *tile, int axis);
/* Is every element of a tile of the axis valid, whatever the sizes are? looped: a loop over it is open. */
bool smg_kernel_comes_out_even(const smg_kernel *k, int axis, bool looped);
/* The END of the LOOP at `loop`; code.count where it has none. */
int smg_kernel_loop_end(const smg_kernel *k, int loop);
/* The innermost LOOP that the instruction is in, an END its own; -1. */
int smg_kernel_loop_around(const smg_kernel *k, int at);
/* Has the axis a last element wherever a tile of it is filled? One that a workgroup or a step has begun with has. */
bool smg_kernel_axis_ends(const smg_kernel *k, int axis);
/* With padding, of all slots; 0 for register. */
int64_t smg_tile_shared_bytes(const smg_kernel *k, const smg_tile *tile);
int64_t smg_kernel_shared_bytes(const smg_kernel *k); /* of all tiles */
/* The shared memory that tile `t` lies on: bytes of its largest tile; 0 for all but the first tile of a memory. */
int64_t smg_kernel_memory_bytes(const smg_kernel *k, int t);
/* Runs of `axis` in a shared tile can be read as groups of four. */
bool smg_tile_runs_along(const smg_kernel *k, const smg_tile *tile, int axis);
/* The most that a lane needs at once: tiles whose value somebody still reads, and the factors of the product that is
 * under way (kernel_live.c). Addresses and what the driver reads ahead come on top. */
int64_t smg_kernel_registers(const smg_kernel *k);
/* Of these the tiles alone that are needed while the product at `at` runs; 0 where nothing was kept (kernel_live.c). */
int64_t smg_kernel_registers_around(const smg_kernel *k, int at);
/* Of all tiles that somebody still reads behind any barrier of the workgroup: a driver that keeps them in memory
 * gives each its own. */
int64_t smg_kernel_registers_kept(const smg_kernel *k);
/* May a load have an index that is out of range? Its kernel then has one binding more, for the report. */
bool smg_kernel_reports(const smg_kernel *k);
bool smg_access_reports(const smg_kernel *k, const smg_access *access);
/* May the expression be another one for another element of the axis? SMG_EXPR_NONE never is. */
bool smg_kernel_expr_moves(const smg_kernel *k, smg_expr expr, int axis);
/* Has the access an index that is another one for another element of the axis? */
bool smg_access_index_moves(const smg_kernel *k, const smg_access *access, int axis);
/* Does the access step along the axis itself? */
static inline bool smg_access_has(const smg_access *access, int axis) {
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] == axis) return true;
    return false;
}
/* Elements from one step along the axis to the next, beside what an index adds; SMG_SIZE_ZERO: it has no such steps. */
static inline smg_size smg_access_stride(const smg_access *access, int axis) {
    for (int i = 0; i < access->axis_count; i++)
        if (access->axis[i] == axis) return access->stride[i];
    return SMG_SIZE_ZERO;
}
/* Number of workgroups for symbol values. false on overflow. */
bool smg_kernel_grid(const smg_kernel *k, const int64_t *symbols, int64_t *out_workgroups);
/* Which block of each grid axis a workgroup has. `blocks`: how many there are; both by place in k->grid. */
void smg_kernel_place_group(const smg_kernel *k, const int64_t *blocks, int64_t group, int64_t *out_block);

/* A program of its own with the same expressions and sizes, to be changed without the other (kernel_copy.c). */
smg_status smg_kernel_copy(const smg_kernel *k, smg_arena *arena, smg_kernel **out_copy);

/* ---- exchanges between lanes (kernel_exchange.c) ---------------------------------------------------- */

/* Who holds parts of one value. A unit leaves one word for each register: a lane, or a subgroup whose lanes hold the
 * same. */
typedef struct smg_exchange {
    uint32_t joined; /* bits of a lane's number: parts in one subgroup, JOIN's */
    int width;       /* lanes of a unit */
    int units;
    uint32_t parts;     /* bits of a unit's number: those that differ in them hold parts of one value */
    uint32_t others;    /* the same, and lanes that hold copies: unit & ~others is the first */
    int64_t part_count; /* units that hold parts of one value */
} smg_exchange;
/* Of JOIN, LEAVE, FOLD, GATHER, and of a REDUCE or MMA whose parts are to be joined. */
smg_exchange smg_kernel_exchange(const smg_kernel *k, const smg_instr *in);
/* The word of the unit for the reg-th register of a LEAVE. */
int64_t smg_exchange_word(const smg_exchange *e, int reg, int unit);
/* The next combination of `bits` behind `part`; 0 behind the last. */
uint32_t smg_exchange_next(uint32_t bits, uint32_t part);

#define SMG_MOST_TERMS 64
#define SMG_TERMS_OPEN (-1) /* not decided yet: lowering knows better once it has layouts */
/* Why the product, of a program with layouts, cannot sum up that many products in f16; NULL where it can. */
const char *smg_kernel_partial_wrong(const smg_kernel *k, const smg_instr *product, int terms);

/* ---- walks by all invocations (kernel_walk.c) -------------------------------------------------------- */

/* Of STAGE, FETCH and PUT, which deal out the elements of a tile, flattened in the order of the walk. They are the one
 * axis of a layout, whose lowest registers are what an invocation takes at once. It may span more than they are. */
#define SMG_WALK_AXIS 0
smg_layout smg_kernel_walk(const smg_kernel *k, const smg_instr *walk);
/* The same of so many elements, `width` at once. */
smg_layout smg_walk_layout(const smg_kernel *k, int64_t elements, int width);
int64_t smg_walk_registers(const smg_kernel *k, int64_t elements);  /* of a lane, one at once */
int smg_walk_width(const smg_instr *walk);                          /* elements that are taken at once */
int64_t smg_walk_steps(const smg_kernel *k, const smg_instr *walk); /* how often an invocation does so */

/* ---- neighbours at once (kernel_wide.c) -------------------------------------------------------------- */

bool smg_kbuffer_is_blocked(const smg_kbuffer *buffer);
int64_t smg_kbuffer_tensor_elements(const smg_kernel *k,
                                    const smg_kbuffer *buffer); /* elements of one of its tensors */
/* Of an access of a buffer in blocks: the terms that go from row to row (-1: none) and along a row element by element,
 * where each term adds to the place in memory what it does whatever the others are. Bases of both are those of blocks
 * then, and what other terms step over is whole blocks, of a row or of all. */
bool smg_access_by_blocks(const smg_kernel *k, const smg_access *access, int *out_down, int *out_along);
/* Are the access's neighbours along the axis aligned groups of that width? */
typedef enum smg_aligned { SMG_ALIGNED_NEVER, SMG_ALIGNED_BY_SIZES, SMG_ALIGNED_ALWAYS } smg_aligned;
smg_aligned smg_access_aligned(const smg_kernel *k, int access, smg_wide wide);
/* Does the leaf load such groups of an input, whatever the sizes? */
bool smg_kernel_loads_groups(const smg_kernel *k, int leaf, smg_wide wide);
/* BY_SIZES: they are where each of these sizes is a multiple of the width. How many they are. */
int smg_access_asked(const smg_kernel *k, int access, smg_wide wide, smg_size out_sizes[SMG_ACCESS_AXES + 2]);
/* Does shared memory under the tile consist of groups of SMG_WIDE? One memory has one type: every tile on it does. */
bool smg_tile_wide(const smg_kernel *k, const smg_tile *tile);
/* The same of groups of SMG_WIDEST: elements of 16 bits that are written by such alone, and read by nothing but
 * products by matrices, or with partial sums, of which they are the right factor, by such groups. */
bool smg_tile_widest(const smg_kernel *k, int tile);
/* Elements of what a shared tile is an array of. */
int smg_tile_group(const smg_kernel *k, int tile);
/* Does the walk load groups of SMG_WIDEST as memory has them, and nothing else? */
bool smg_walk_widest(const smg_kernel *k, const smg_instr *walk, int axis);
/* The axis along which a lane owns whole groups in registers of the instruction's inner loop; -1: none. */
int smg_kernel_run_axis(const smg_kernel *k, const smg_instr *instr);
/* The same of pairs. */
int smg_kernel_pair_axis(const smg_kernel *k, const smg_instr *instr);
/* How wide these groups may be: SMG_WIDE or SMG_WIDEST; 0: there are none. */
int smg_kernel_run_width(const smg_kernel *k, const smg_instr *instr);
/* The same of a product's rows along the axis. */
bool smg_kernel_owns_rows(const smg_kernel *k, const smg_instr *product, int axis);
/* Is what a SET loads or a STORE writes whole matrices of memory? By how many neighbours they lie, along the axis of
 * their columns, or of a right factor's rows; the other axis. */
bool smg_kernel_whole_matrices(const smg_kernel *k, const smg_instr *instr, smg_wide *out_wide, int *out_row);
/* How elements of 16 bits that lanes hold of several rows get to lie over them as memory has them: two bits of a
 * register's number, which are columns, trade places with two of a lane's, which are rows. */
typedef struct smg_trade {
    int row, col;       /* axes */
    smg_layout stored;  /* who stores what */
    uint32_t lane[2];   /* the bits of a lane's number, */
    int64_t rows[2];    /* what they step along the rows, */
    int64_t columns[2]; /* and along the columns the two lowest register bits that lie on them */
} smg_trade;
/* May the lanes of a subgroup trade what the STORE stores? Then they hold whole runs of columns. */
bool smg_kernel_trades(const smg_kernel *k, const smg_instr *store, smg_trade *out_trade);
/* The same of what a SPILL leaves in shared memory. */
bool smg_kernel_spills_matrices(const smg_kernel *k, const smg_instr *spill, smg_wide *out_wide);
/* Does a SET load a factor of matrices, of which a lane has runs of SMG_WIDEST in registers, wherever these are? A run
 * is one access of memory. */
bool smg_kernel_loads_runs(const smg_kernel *k, const smg_instr *instr, smg_wide *out_wide);
/* Can the product at `at`, of views, be `addressed`? Its subgroups are rows, their lanes neighbouring columns; columns
 * and k come out even. */
bool smg_kernel_addressable(const smg_kernel *k, int at);
/* Do all lanes of the SET, REDUCE or STORE load the same element of an input of words, where it is `addressed`? */
bool smg_kernel_loads_alike(const smg_kernel *k, const smg_instr *instr, int access);
/* Does its expression have such a load? */
bool smg_kernel_loads_some_alike(const smg_kernel *k, const smg_instr *instr);

/* ---- products by matrices (kernel_matrix.c) ------------------------------------------------------------ */

/* The axes of the product, of more than one element, that its left and its right factor have alone: one of rows. Of
 * several of columns *out_col is the one that the result has last; for each element of the others it has matrices of
 * their own. false where it has other sides. */
bool smg_kernel_product_sides(const smg_kernel *k, const smg_instr *product, int *out_row, int *out_col);
/* Where lanes have such a matrix. */
const smg_layout *smg_matrix_layout(const smg_matrix *matrix, smg_fragments use);
/* Does the layout consist of whole matrices, their rows along one axis and their columns along the other? The register
 * r is then element r % n of the lane's matrix r / n, n being smg_matrix_elements. */
bool smg_matrix_lays(const smg_matrix *matrix, smg_fragments use, const smg_layout *layout, int row, int col);
#define SMG_MATRIX_BITS SMG_LAYOUT_ORDER_BITS /* of a side */
/* The order of what is contracted in which a lane has runs of SMG_WIDEST neighbours in registers, of both factors. */
smg_layout_order smg_matrix_in_runs(const smg_matrix *matrix);
/* Where an element of what is contracted lies in that order. Bits of `at` go their own ways. */
int64_t smg_matrix_place_in_runs(const smg_matrix *matrix, int64_t at);
/* Are neighbours in pairs still neighbours there? A word moves two then. */
bool smg_matrix_pairs_in_runs(const smg_matrix *matrix);
/* Is it the order that matrices have by themselves? */
bool smg_matrix_has_own_order(const smg_matrix *matrix);
/* Has each subgroup, in a register tile of this layout, the left or the right factor of all that it multiplies into the
 * product's sums? The contracted axis in the order of the other factor, where that is in registers, too. */
bool smg_matrix_held(const smg_kernel *k, const smg_instr *product, smg_fragments use, const smg_layout *layout);
/* The axes on which a register tile of fragments has its matrices; false where it has none. */
bool smg_matrix_sides(const smg_kernel *k, const smg_tile *tile, int *out_row, int *out_col);
/* Can the TAKE read whole matrices from where it does? Along which axes: the factor's own, and what is contracted. */
bool smg_matrix_takes(const smg_kernel *k, const smg_instr *take, int *out_own, int *out_along);
/* The same of a TAKE by runs along what is contracted: lanes have it in any order, eight neighbours each. */
bool smg_matrix_takes_runs(const smg_kernel *k, const smg_instr *take);
/* A matrix is read from shared memory with its rows or its columns side by side. */
bool smg_matrix_side_by_side(const smg_kernel *k, const smg_instr *product, int factor);
int64_t smg_matrix_elements(const smg_matrix *matrix, smg_fragments use); /* of one matrix that a lane has */
/* Is the tile of sums of an opaque matrix? */
bool smg_matrix_hides(const smg_kernel *k, const smg_tile *tile);
/* Words of an exchange that each subgroup has of its own. */
int64_t smg_matrix_words(const smg_kernel *k, const smg_tile *exchange);
/* Where among these GATHER finds the reg-th of its registers of a lane. Matrices lie behind each other, row by row. */
int64_t smg_matrix_word(const smg_kernel *k, int reg, int lane);
int64_t smg_matrix_rows(const smg_kernel *k, const smg_instr *product); /* matrices behind each other along its rows */
/* Registers of all lanes together that a matrix of a factor (LEFT or RIGHT) is loaded into; 0: it is there already. */
int64_t smg_matrix_loaded(const smg_kernel *k, const smg_instr *product, smg_fragments use);
/* Why the product cannot be made by matrices of that shape, whatever the layouts are; NULL. */
const char *smg_matrix_objection(const smg_kernel *k, const smg_matrix *matrix, const smg_instr *product);

/* ---- which steps a loop has (kernel_range.c) ---------------------------------------------------------- */

/* Can the bound be told from the axes' bases? NULL, or why not. */
const char *smg_kernel_bound_wrong(const smg_kernel *k, smg_expr bound);
/* Does the result of a bound's primitive fall where its operand `arg` rises? */
bool smg_kernel_bound_falls(const smg_kernel *k, const smg_expr_node *node, int arg);
/* The stride's sign where it is the same for all sizes, 0 where it is not. */
int smg_kernel_stride_sign(const smg_kernel *k, smg_size stride);
/* The loop's elements, for bases of the axes outside: its first step begins at *out_first, steps do so before *out_end.
 * None where that is not greater. buffers: what bounds read; NULL: not known, so that it bounds nothing. Returns -1, or
 * the access of a bound that reaches beyond its buffer. */
int smg_kernel_loop_range(const smg_kernel *k, const smg_instr *loop, const int64_t *symbols, const int64_t *base,
                          const smg_karray *buffers, int64_t *out_first, int64_t *out_end);
/* Where the whole tiles of the axis end. */
smg_size smg_kernel_whole_extent(const smg_kernel *k, int axis);
/* Does the loop end there, so that every element of its steps is valid along its axis? */
bool smg_kernel_loop_is_whole(const smg_kernel *k, const smg_instr *loop);
/* The loop whose first step an instruction outside of it, which may work ahead, is for; -1. */
int smg_kernel_next_loop(const smg_kernel *k, int at);

/* ---- order in shared memory (kernel_hazard.c) ---------------------------------------------------------- */

/* Two instructions that touch the same memory, and no barrier of the scope between them. */
typedef struct smg_hazard {
    int at, before;     /* instructions; in a loop the second may stand in front of the first */
    int tile, other;    /* that they touch; two where these share one memory */
    bool writes, wrote; /* else it is read */
    smg_scope scope;    /* the least that a barrier needs */
} smg_hazard;
typedef struct smg_hazards smg_hazards;
/* Who touches what, for a program whose indices are good, and whose barriers alone may change afterwards. */
smg_status smg_hazards_make(const smg_kernel *k, smg_arena *arena, smg_hazards **out_hazards);
/* The first hazard in the order of execution, with the barriers as they are now; false: there is none. */
bool smg_hazards_find(smg_hazards *hazards, smg_hazard *out_hazard);
/* Steps of a loop over the axis that meet all that can meet: one more than the most slots along it. */
int smg_kernel_walked_steps(const smg_kernel *k, int axis);
const char *smg_scope_word(smg_scope scope); /* "subgroup" */

/* ---- how much code it is (kernel_code.c) ------------------------------------------------------------ */

/* Operations of one lane after all that is written out has been: what a driver's compiler has to work through. */
int64_t smg_kernel_operations(const smg_kernel *k);
/* Steps of a loop over a constant extent; 0 where sizes or a range decide. */
int64_t smg_kernel_loop_steps(const smg_kernel *k, const smg_instr *loop);
/* k of one MMA: all of the tile's, and as many as its operands are read by (8 of 16-bit
 * views, 4, 2 or 1, or the matrix's). */
int64_t smg_kernel_product_depth(const smg_kernel *k, const smg_instr *product);
int smg_kernel_product_group(const smg_kernel *k, const smg_instr *product);
/* A lane's registers of the left factor for one k, and the lanes that share out k (of an MMA or a JOIN). */
int64_t smg_kernel_product_rows(const smg_kernel *k, const smg_instr *product);
int64_t smg_kernel_product_lanes(const smg_kernel *k, const smg_instr *product);
/* k from one of a lane's groups to its next one: those of all lanes that share out k lie between. */
int64_t smg_kernel_product_stride(const smg_kernel *k, const smg_instr *product);
/* Words of 32 bits that it reads of the right one for one k. */
int64_t smg_kernel_column_words(const smg_kernel *k, const smg_instr *product);
/* Is the inner loop over a lane's registers, or the one over the steps of a walk by all invocations, written out? */
bool smg_kernel_inner_written(const smg_kernel *k, int64_t registers);
bool smg_kernel_steps_written(int64_t steps);

const char *smg_join_word(smg_join form); /* "xor" */
const char *smg_tile_word(smg_type type); /* of a tile's elements: "float", "f16" */

/* ---- text, verifier, interpreter ------------------------------------------------------------------ */

/* Readable and complete: header (name, lanes, subgroup), axes, buffers, accesses, tiles, code indented by loops. */
void smg_kernel_print(const smg_kernel *k, smg_text *text);
/* Reads what smg_kernel_print wrote (golden tests, hand-written kernels). */
smg_status smg_kernel_parse(smg_arena *arena, smg_sizes *sizes, const char *text, smg_kernel **out_kernel);

/* INTERNAL with the instruction's number and the rule when the program is wrong: tile and axis indices,
 * expression leaves readable where they are used (a register leaf's axes within the instruction's), WHOLE axes
 * with tile >= upper bound of extent, LOOP nesting, no loop on a grid axis, uninitialised tiles, no hazard in shared
 * memory (loops wrap around), STORE covering its axes once, each element of a written buffer one lane's, layouts that
 * cover their tiles, register tiles readable where they are read, kinds of expressions, lanes a power of two. */
smg_status smg_kernel_verify(smg_context *ctx, const smg_kernel *k);

/* Runs every workgroup on the CPU (threads over workgroups), arithmetic in double, or rounding every tile element to
 * f32 after each instruction when `single` is set. Out-of-range addresses are INTERNAL; bad data indices INVALID
 * ("index 30600 outside [0, 30522)"). Tiles are kept once an element, whoever holds it. */
smg_status smg_kernel_interpret(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                                bool single);
/* The same by lane: every register of every lane, shared memory with who touched each word, all lanes together from one
 * instruction to the next. INTERNAL, with instruction, lanes and tile, where a lane reads a register that does not hold
 * its element, what nobody has written, or in shared memory what another lane wrote without a barrier between; where it
 * writes over what another read or wrote so; where it stores an element of a buffer that another lane, of any
 * workgroup, stores or loads; and where lanes that hold the same element differ after an instruction.
 * Sums of partial products may differ until their JOIN. Indices, kinds and loops must be those of a program that
 * smg_kernel_verify accepts; layouts and barriers need not be. Several times slower. */
smg_status smg_kernel_interpret_lanes(smg_context *ctx, const smg_kernel *k, const int64_t *symbols,
                                      smg_karray *buffers, bool single);

#endif
