/* Private to the per-lane mode of the interpreter: what it computes once a kernel (plan), and one workgroup's registers
 * and shared memory (lanes). */
#ifndef SMG_KERNEL_LANES_H
#define SMG_KERNEL_LANES_H

#include "kernel/kernel_interpret.h"

#include <stdatomic.h>

/* A layout as tables: what a register's number and a lane's (in the workgroup) add to a coordinate. Its axes are the
 * kernel's, or the one of a walk by all invocations. */
typedef struct lanes_places {
    smg_layout layout;
    int registers;
    int axis_count;
    int axis[SMG_LAYOUT_AXES];
    int64_t tile[SMG_LAYOUT_AXES]; /* elements that there are along it */
    int *by_register[SMG_LAYOUT_AXES];
    int *by_lane[SMG_LAYOUT_AXES];
    bool ragged;     /* it spans more than these */
    uint32_t copies; /* bits of a lane's number that do not move its elements */
} lanes_places;

/* Where tiles of one layout are read and written beside the elements of another. */
typedef struct lanes_beside {
    int *reg;  /* by register of the other; -1: there is none */
    bool held; /* always by the lane that works on the element */
} lanes_beside;

enum {
    LANES_OUTSIDE = -1,
    LANES_NOBODY = -2
}; /* of the tile is no such element; it is held by nobody that may read it */

/* An MMA: the parts of its layout that its factors have, and which of a lane's factors a register multiplies. */
typedef struct lanes_product {
    lanes_places left, right;
    int *left_of, *right_of; /* by register of the instruction's layout */
    /* By lane * registers + register of `left` and `right`: of a register tile, where its subgroup (without matrices
     * the lane itself) has the element, lane * registers + register again; of a shared one, how far the element is
     * behind the first; or LANES_*. NULL: the factor is a view. */
    int *left_from, *right_from;
} lanes_product;

/* Of an element of a buffer: who did something to it, of all lanes of the grid the first one, turned over, and the last
 * one; 0: nobody. Threads write it. */
typedef struct lanes_touched {
    atomic_ullong first, last;
} lanes_touched;

typedef struct lanes_buffer {
    lanes_touched *written; /* by element; NULL: the kernel does not write it */
    lanes_touched *loaded;  /* NULL: nor loads it */
} lanes_buffer;

typedef struct kernel_lanes_plan {
    lanes_places *places;    /* by layout */
    lanes_beside *beside;    /* by layout of the tile * layouts + layout of the instruction; those that are asked for */
    lanes_product *products; /* by instruction */
    lanes_places *walks;     /* by instruction: STAGE, FETCH, PUT */
    int64_t *first_word;     /* by tile: SHARED */
    int *home;               /* by tile: whose memory it is on */
    lanes_buffer *buffers;   /* by buffer */
    int64_t words;           /* of shared memory: its elements */
    int64_t most_registers;  /* of a tile or a factor */
    int64_t most_places;     /* registers of an MMA's layout */
} kernel_lanes_plan;

#define LANES_SCOPES 2 /* of barriers; one of the workgroup is one of every subgroup */

/* Who touched a word last, and after how many barriers of each scope. */
typedef struct lanes_mark {
    int lane; /* -1: nobody */
    int instr;
    uint32_t epoch[LANES_SCOPES];
} lanes_mark;

#define LANES_READERS 2

/* An element of shared memory, of 16 or 32 bits. Two readers are enough to find one that is not the writer: of two
 * subgroups, and of each two lanes. */
typedef struct lanes_word {
    double value;
    int tile; /* whose element it is; -1: nobody's */
    lanes_mark writer, reader[LANES_READERS][LANES_READERS];
} lanes_word;

/* REGISTER: lane * registers + register. STAGING: its elements, each in the register that the walk gives it. Of all
 * slots, one behind the other. */
typedef struct lanes_tile {
    int64_t one; /* of one slot */
    double *value;
    bool *set;
    const lanes_places *walk; /* STAGING: by which it was filled last */
    uint32_t partial;         /* bits of a lane's number over which its sums are not joined */
} lanes_tile;

typedef struct lanes_partial {
    double sum;
    int terms;
} lanes_partial;

typedef struct kernel_lanes {
    lanes_tile *tile;
    lanes_word *word;
    uint32_t epoch[LANES_SCOPES];
    /* the elements at hand */
    int layout;               /* -1: that of no tile */
    const lanes_places *walk; /* dealt out over all lanes by this; NULL */
    uint32_t apart, parts;    /* bits of lanes' numbers: whose parts may be read, and whose have been */
    int lane[KERNEL_BLOCK], reg[KERNEL_BLOCK];
    double *fold;         /* REDUCE: by lane and register of the result */
    double *left, *right; /* MMA: factors, lane * registers + register */
    double *sums;
    bool *summed;
    lanes_partial *parts_of; /* by sum */
    int *live;               /* MMA: the lane's places inside the tiles */
} kernel_lanes;

/* The elements that an instruction goes over, as blocks. */
typedef struct lanes_walk {
    const lanes_places *places;
    bool dealt;    /* over all lanes: the places' axis is the number of an element of the space */
    uint32_t skip; /* lanes whose numbers have any of these bits are left out */
    int64_t next, end;
} lanes_walk;

/* ---- elements and where they are (kernel_lanes_tile.c) ---- */
void kernel_lanes_begin(const kernel_machine *m, kernel_worker *w);
/* All elements of the layout, or of a STAGE, FETCH or PUT, over whose axes the space is. */
lanes_walk kernel_lanes_walk(const kernel_machine *m, kernel_worker *w, int layout);
lanes_walk kernel_lanes_deal(const kernel_machine *m, kernel_worker *w, const smg_instr *instr);
/* The next elements of the walk become the block at hand; returns how many, 0 at the end. */
int kernel_lanes_next(const kernel_machine *m, kernel_worker *w, const kernel_space *s, lanes_walk *walk);
/* Registers of the lane's places that are inside the tiles; returns how many. */
int kernel_lanes_live(const lanes_places *p, int lane, int *out_live);
/* Where the block's elements of a tile are, as w->address; false after a fault. */
bool kernel_lanes_find(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n);
/* The block's elements of a tile, each by its lane; false after a fault. */
bool kernel_lanes_read(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n, double *out);
bool kernel_lanes_write(const kernel_machine *m, kernel_worker *w, int tile, const kernel_space *s, int n,
                        const double *value);
/* All lanes' elements of a shared tile, by lane * registers + register of the places: `from` says how far they are
 * behind its first, or LANES_OUTSIDE; false after a fault. */
bool kernel_lanes_load(const kernel_machine *m, kernel_worker *w, int tile, const lanes_places *p, const int *from,
                       double *out);
/* A word of an exchange, by its place in shared memory; false after a fault. */
bool kernel_lanes_read_word(const kernel_machine *m, kernel_worker *w, int tile, int64_t address, int lane,
                            double *out);
bool kernel_lanes_write_word(const kernel_machine *m, kernel_worker *w, int tile, int64_t address, int lane,
                             double value);
void kernel_lanes_barrier(kernel_worker *w, smg_scope scope);
/* Lanes that hold the same elements of the register tile must agree. */
bool kernel_lanes_compare(const kernel_machine *m, kernel_worker *w, int tile);
/* Ends the workgroup with a sentence; returns false. */
bool kernel_lanes_fault(kernel_worker *w, const char *format, ...) SMG_PRINTF(2, 3);

static inline const lanes_beside *kernel_lanes_beside(const kernel_machine *m, int of, int layout) {
    return &m->lanes->beside[of * m->k->layouts.count + layout];
}

/* ---- buffers that the kernel writes (kernel_lanes_buffer.c) ---- */
smg_status kernel_lanes_make_buffers(kernel_machine *m);
/* The lane of the block's element i has stored it; lanes have loaded the valid ones of n. */
void kernel_lanes_wrote(const kernel_machine *m, const kernel_worker *w, int buffer, int i);
void kernel_lanes_loaded(const kernel_machine *m, const kernel_worker *w, int buffer, int n);
/* No element that a lane wrote was another's. */
smg_status kernel_lanes_finish(const kernel_machine *m);

/* ---- exchanges (kernel_lanes_exchange.c) ---- */
/* Values of lanes that differ in bits of the mask only are combined, in the order of lanes, and given to all. */
void kernel_lanes_combine(int lanes, uint32_t mask, int registers, smg_prim prim, smg_kind kind, double *value);
void kernel_lanes_join(const kernel_machine *m, kernel_worker *w, const smg_instr *instr);
void kernel_lanes_leave(const kernel_machine *m, kernel_worker *w, const smg_instr *instr);
void kernel_lanes_fold(const kernel_machine *m, kernel_worker *w, const smg_instr *instr);
void kernel_lanes_gather(const kernel_machine *m, kernel_worker *w, const smg_instr *instr);

/* ---- instructions (kernel_lanes_run.c) ---- */
void kernel_lanes_run(const kernel_machine *m, kernel_worker *w, int at);

#endif
