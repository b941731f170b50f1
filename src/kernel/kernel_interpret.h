/* Private to the interpreter: a kernel bound to symbol values (machine), one thread's memory (worker), the flat form of
 * expressions (tape), and the two ways to keep tiles (mode). Everything a worker touches is plain data made beforehand,
 * because pools and contexts belong to one thread. */
#ifndef SMG_KERNEL_INTERPRET_H
#define SMG_KERNEL_INTERPRET_H

#include "kernel/kernel.h"

#define KERNEL_BLOCK 256 /* elements evaluated at a time */
/* REDUCE: axes of dst and the reduced ones; and those that a leaf picks from */
#define KERNEL_SPACE_AXES (2 * SMG_TILE_AXES + SMG_LAYOUT_PICKS)

typedef enum kernel_step_kind {
    KERNEL_STEP_CONST, /* constants and sizes */
    KERNEL_STEP_TILE,
    KERNEL_STEP_LOAD,
    KERNEL_STEP_IOTA,
    KERNEL_STEP_PRIM
} kernel_step_kind;

typedef struct kernel_step {
    kernel_step_kind what;
    smg_prim prim;
    smg_kind kind;
    int arg[3];            /* steps; LOAD: arg[0] is the index or -1 */
    int index;             /* tile or access */
    const smg_kleaf *leaf; /* TILE */
    double value;
    bool jumps; /* of floats: they are rounded to f32 first, as one of two that are compared is where it was stored */
} kernel_step;

/* Steps in an order in which operands come first; a step's result is the slot of its number. */
typedef struct kernel_tape {
    SMG_ARRAY(kernel_step) steps;
    int result;
    int index; /* STORE with an indirect access: the step that gives its index, else -1 */
} kernel_tape;

/* The elements an instruction ranges over: row-major, the last axis fastest. */
typedef struct kernel_space {
    int axis_count;
    int axis[KERNEL_SPACE_AXES];
    int64_t elements;
} kernel_space;

typedef struct kernel_view { /* an access with numbers for sizes */
    int buffer;
    int axis_count;
    int axis[SMG_ACCESS_AXES];
    int64_t stride[SMG_ACCESS_AXES];
    int64_t offset;
    bool indexed;
    int64_t index_stride;
    int64_t index_limit;
} kernel_view;

typedef enum kernel_fault_kind {
    KERNEL_FAULT_NONE,
    KERNEL_FAULT_ADDRESS,
    KERNEL_FAULT_INDEX,
    KERNEL_FAULT_TOLD /* of the mode: its own sentence */
} kernel_fault_kind;

typedef struct kernel_fault {
    kernel_fault_kind what;
    int64_t group;
    int instr;
    int access;
    int64_t address;
    double index;
    char told[256];
} kernel_fault;

struct kernel_lanes;
struct kernel_lanes_plan;

typedef struct kernel_worker {
    double **tile;              /* once an element: by tile, row-major without padding, slots behind each other */
    double *fold;               /* once an element: results of a REDUCE before they are written */
    struct kernel_lanes *lanes; /* by lane: registers and shared memory */
    int64_t *base;              /* by axis */
    int64_t *block;             /* by place in the grid */
    int64_t *end;               /* by axis: of the loop over it that is open; 0: none is */
    double *slots;              /* KERNEL_BLOCK values a step */
    int64_t coordinate[KERNEL_SPACE_AXES][KERNEL_BLOCK];
    int64_t address[KERNEL_BLOCK];
    bool picks;                /* the coordinates are those of what a leaf picks, no longer the element's own */
    bool valid[KERNEL_BLOCK];  /* of the access at hand */
    bool inside[KERNEL_BLOCK]; /* every coordinate of the space is valid */
    kernel_fault fault;
} kernel_worker;

struct kernel_machine;
/* How tiles are kept, and what instructions do to them. */
typedef struct kernel_mode {
    smg_status (*prepare)(struct kernel_machine *m);
    smg_status (*make_worker)(struct kernel_machine *m, kernel_worker *w);
    /* A workgroup begins: no tile has been written. */
    void (*begin)(const struct kernel_machine *m, kernel_worker *w);
    /* Any instruction but LOOP and END, at w->base. */
    void (*run)(const struct kernel_machine *m, kernel_worker *w, int at);
    /* Elements of a tile at the block's coordinates; false after a fault. */
    bool (*read_tile)(const struct kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n,
                      double *out);
    /* The block's n valid elements of a buffer that the kernel writes have been loaded; NULL: nobody minds. */
    void (*loaded)(const struct kernel_machine *m, const kernel_worker *w, int buffer, int n);
    /* All workgroups have run, and none has a fault; NULL. */
    smg_status (*finish)(const struct kernel_machine *m);
} kernel_mode;

typedef struct kernel_machine {
    smg_context *ctx;
    smg_arena *arena;
    const smg_kernel *k;
    const int64_t *symbols;
    smg_karray *buffers;
    bool single;
    const kernel_mode *mode;
    struct kernel_lanes_plan *lanes; /* by lane only */
    int64_t *extent;                 /* by axis */
    int64_t *blocks;                 /* by place in the grid */
    kernel_view *views;              /* by access */
    kernel_tape *tapes;              /* by instruction */
    int *match; /* by instruction: LOOP -> END, END -> LOOP, what works ahead -> the loop to come, or -1 */
    int most_steps;
    int64_t groups;
    int workers;
    kernel_worker *worker;
} kernel_machine;

/* Binds the kernel and runs its workgroups over the machine's cores. */
smg_status kernel_interpret_as(smg_context *ctx, const smg_kernel *k, const int64_t *symbols, smg_karray *buffers,
                               bool single, const kernel_mode *mode);
/* The slot of the tile in the step at hand. */
int kernel_slot(const kernel_machine *m, const kernel_worker *w, const smg_tile *tile);
/* Evaluates a size, or fails with INVALID naming `what`. */
smg_status kernel_machine_size(kernel_machine *m, smg_size size, const char *what, int64_t *out_value);

/* ---- tapes (kernel_interpret_tape.c) ---- */
smg_status kernel_tapes_compile(kernel_machine *m);
/* Coordinates and `inside` of the n elements from `first` on. */
void kernel_block_begin(const kernel_machine *m, kernel_worker *w, const kernel_space *s, int64_t first, int n);
/* What the tile's clamped axes lack is their last element. */
void kernel_block_clamp(const kernel_machine *m, kernel_worker *w, const kernel_space *s, const smg_tile *tile, int n);
/* Is 0 what a PUT moves? Clears kept[i] where dst does not clamp what was fetched clamped. */
void kernel_block_put(const kernel_machine *m, const kernel_worker *w, const kernel_space *s, const smg_instr *put,
                      int n, bool *kept);
/* Clears mask[i] where a coordinate of the space's axes [from, to) is outside the axis. */
void kernel_block_mask(const kernel_machine *m, const kernel_worker *w, const kernel_space *s, int from, int to, int n,
                       bool *mask);
/* Runs a tape over the block; NULL after a fault. */
const double *kernel_tape_run(const kernel_machine *m, kernel_worker *w, const kernel_tape *tape, const kernel_space *s,
                              int n);
/* address[] and valid[] of an access, with bounds checked; `index` may be NULL. */
bool kernel_block_address(const kernel_machine *m, kernel_worker *w, int access, const kernel_space *s,
                          const double *index, int n);

void kernel_space_add(const smg_kernel *k, kernel_space *s, int count, const int *axes);
/* The axis's slot in the space, or -1. */
int kernel_space_slot(const kernel_space *s, int axis);

/* ---- instructions (kernel_interpret_run.c) ---- */
extern const kernel_mode kernel_once; /* once an element, whoever holds it */

/* What a tile holds, or STORE leaves in a buffer. */
static inline double kernel_rounded(const kernel_machine *m, smg_type type, double value) {
    if (m->single && smg_type_kind(type) == SMG_KIND_FLOAT) value = (double)(float)value;
    return type == SMG_TYPE_F32 ? value : smg_type_stored(type, value);
}

/* The same of n of them, which may stay where they are. */
static inline void kernel_rounded_each(const kernel_machine *m, smg_type type, const double *value, int n,
                                       double *out) {
    bool single = m->single && smg_type_kind(type) == SMG_KIND_FLOAT;
    for (int i = 0; single && i < n; i++) out[i] = (double)(float)value[i];
    for (int i = 0; !single && value != out && i < n; i++) out[i] = value[i];
    for (int i = 0; i < n && (type == SMG_TYPE_F16 || type == SMG_TYPE_BF16); i++)
        out[i] = smg_type_stored(type, out[i]);
}

static inline double kernel_folded(smg_prim prim, smg_kind kind, double a, double b) {
    if (prim == SMG_PRIM_ADD && kind == SMG_KIND_FLOAT) return a + b;
    double value = smg_prim_eval(prim, kind, a, b, 0.0);
    return kind == SMG_KIND_INT ? smg_wrap_i32(value) : value;
}

#endif
