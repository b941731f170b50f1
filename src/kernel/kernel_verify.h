/* Private to the verifier: its state. Declarations are checked first, so that the walk over the code may
 * trust every index; the walk then keeps what holds at the instruction at hand. */
#ifndef SMG_KERNEL_VERIFY_H
#define SMG_KERNEL_VERIFY_H

#include "kernel/kernel.h"

#define KERNEL_SPACE_AXES (2 * SMG_TILE_AXES)

typedef struct kernel_tile_state {
    bool set;         /* has been written as a whole */
    uint32_t partial; /* lanes that hold parts of its sums: bits of their number */
    int gathered;     /* registers that GATHER has made whole again */
    int left;         /* EXCHANGE: the LEAVE whose words are there, by instruction */
    /* By slot, of STAGING the first: 1 + the step that it holds something for; and the instruction that wrote it. */
    int held[SMG_SLOTS], by[SMG_SLOTS];
} kernel_tile_state;

typedef struct kernel_verifier {
    smg_context *ctx;
    smg_arena *arena;
    const smg_kernel *k;
    int64_t *most;            /* by axis: upper bound of its extent */
    bool *checked;            /* by expression: its kinds are good */
    int *visited;             /* by expression: the last visit that read it */
    int *access_state;        /* by access: 0 new, 1 being checked, 2 good */
    int *match;               /* by instruction: LOOP -> END */
    int *store_of;            /* by buffer: the first instruction that stores to it; -1 */
    bool *looped;             /* by axis: a loop over it is open */
    int *step;                /* by axis: of its loop; 0 outside */
    kernel_tile_state *tiles; /* by tile */
    /* the instruction at hand */
    int at;
    bool staging;
    uint32_t apart;           /* lanes whose parts it may read: bits of their number */
    uint32_t parts;           /* lanes whose parts it has read */
    const smg_layout *layout; /* of its elements in lanes; NULL while staging, or without layouts */
    int axis_count;           /* what it ranges over */
    int axes[KERNEL_SPACE_AXES];
    int visit; /* its number in the walk */
} kernel_verifier;

#define KERNEL_WRONG(v, ...) smg_fail((v)->ctx, SMG_INTERNAL, __VA_ARGS__)

/* Range and kinds of everything that `expr` reaches; its own kind must be `kind`. */
smg_status kernel_verify_expr(kernel_verifier *v, smg_expr expr, smg_kind kind);
/* Readability of the leaves of `expr` (indices of accesses included) by the instruction at hand. */
smg_status kernel_verify_reads(kernel_verifier *v, smg_expr expr);
/* The axis has a base: grid, an open loop, or a tile that holds all of it. */
smg_status kernel_verify_bound(const kernel_verifier *v, int axis);
/* A tile is read, or written as a whole, by the instruction at hand. */
smg_status kernel_verify_read_tile(kernel_verifier *v, int tile);
void kernel_verify_write_tile(kernel_verifier *v, int tile);
/* The layout exists, spans these axes and has no others; or the program has no layouts yet. */
smg_status kernel_verify_layout(const kernel_verifier *v, const char *what, int number, const int *axes, int count);
/* The tile exists and lies where the instruction wants it; all its axes have a base. */
smg_status kernel_verify_tile(const kernel_verifier *v, const char *role, int tile, smg_residence residence);
/* The axes, each open and none twice, are among those of the instruction at hand. */
smg_status kernel_verify_axes(kernel_verifier *v, const int *axes, int count, int most);
/* The instruction's layout covers its axes, and its result (may be NULL) lies where the lanes that make it can write
 * it. */
smg_status kernel_verify_laid(kernel_verifier *v, const smg_instr *instr, const smg_tile *dst);
static inline bool kernel_verify_has_axis(const int *axes, int count, int axis) {
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}
/* Bits of a lane's number that lie on the instruction's own axes. */
uint32_t kernel_verify_lanes_along(const kernel_verifier *v, const smg_instr *instr);
/* Elements of buffers that the kernel writes: those that a well-formed STORE stores, and those that the instruction at
 * hand, which has its layout, loads (kernel_verify_store.c). */
smg_status kernel_verify_find_stores(kernel_verifier *v);
smg_status kernel_verify_stores(const kernel_verifier *v, const smg_instr *store);
smg_status kernel_verify_load(const kernel_verifier *v, int access);
/* JOIN, LEAVE, FOLD and GATHER (kernel_verify_exchange.c). */
smg_status kernel_verify_exchange(kernel_verifier *v, const smg_instr *instr);
/* What the instruction takes at once; everything else about it has been checked (kernel_verify_wide.c). */
smg_status kernel_verify_wide(const kernel_verifier *v, const smg_instr *instr);
/* An element of the tile is asked for, or made: a lane's, which of opaque sums nobody knows. */
smg_status kernel_verify_places(const kernel_verifier *v, int tile);
/* The matrix, the tiles of its sums, and a product into one (kernel_verify_matrix.c). */
smg_status kernel_verify_matrix(const kernel_verifier *v);
smg_status kernel_verify_fragments(const kernel_verifier *v, const smg_tile *tile);
smg_status kernel_verify_by_matrices(const kernel_verifier *v, const smg_instr *product);
smg_status kernel_verify_code(kernel_verifier *v);

#endif
