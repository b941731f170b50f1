/* glsl_private.h: what the parts of glsl/ share: the writer (one shader being written) and the
 * iteration (the loops over the elements of one instruction that are open).
 *
 * Names in the text: g_ buffers, t_ tiles, at_ bases of axes, z sizes, p addresses at the start of
 * an instruction, q addresses of a row, c_ coordinates, ok_ validity, v loaded values, e
 * expressions. */
#ifndef SMG_GLSL_PRIVATE_H
#define SMG_GLSL_PRIVATE_H

#include "glsl/glsl.h"

typedef enum glsl_use {
    GLSL_USE_SUBGROUP,
    GLSL_USE_SHUFFLE,
    GLSL_USE_ARITHMETIC,
    GLSL_USE_CLUSTERED,
    GLSL_USE_16BIT,   /* floats of 16 bits in buffers */
    GLSL_USE_FLOAT16, /* and elsewhere, f16 */
    GLSL_USE_INT16,   /* bf16 */
    GLSL_USE_BF16,    /* as a type of its own: factors of matrices */
    GLSL_USE_DIAGNOSTICS,
    GLSL_USE_ADDRESSES,
    GLSL_USE_MATRICES,
    GLSL_USE_COUNT
} glsl_use;

/* What lanes add to a coordinate: a local of the kernel. */
typedef struct glsl_lane_name {
    int axis; /* the first that it is for */
    const char *text, *name;
} glsl_lane_name;

typedef struct glsl_writer {
    smg_context *ctx;
    const smg_kernel *k;
    const smg_target *target;
    smg_arena *arena; /* of everything below and all strings */
    smg_text body;    /* the inside of main, written before the head is known */
    int depth;        /* of indentation */
    int serial;       /* numbers of temporaries */
    smg_status status;
    bool uses[GLSL_USE_COUNT];
    bool pointer_used[SMG_TYPE_COUNT];
    int pointer_groups[SMG_TYPE_COUNT]; /* widths of the groups that are read so: a sum of powers of two */
    bool across[SMG_TYPE_COUNT];        /* neighbours are read across the lanes */
    bool pairs_used;
    const char **axis_name, **tile_name, **buffer_name; /* unique identifiers, without prefix */
    bool *looped;                                       /* axis has a loop open */
    SMG_ARRAY(smg_size) sizes;                          /* those that need a z */
    bool *symbol_used;
    int symbol_count;
    bool *buffer_read;
    bool *buffer_words;  /* is read or written by elements */
    bool *buffer_wide;   /* is read or written by groups of four */
    bool *buffer_pair;   /* is read or written by pairs of 16 bits */
    bool *buffer_eight;  /* is read by groups of eight, of 16 bits */
    bool *buffer_halves; /* is read as halves of words */
    int64_t *ahead;      /* by axis: what an instruction that works ahead adds to the base */
    int *copy;           /* by axis: which of the steps that its loop writes out one after the other is being written */
    const char **moved;  /* by axis: the base is this; NULL: the loop's */
    bool *ranged;        /* by instruction: a LOOP whose first_ and end_ are there */
    int *open;           /* by axis: the LOOP that is open, or whose first step is fetched */
    SMG_ARRAY(glsl_lane_name) lane_parts;
    bool *address_used; /* by buffer: its address is pushed */
} glsl_writer;

typedef struct glsl_iter {
    smg_layout layout;       /* of the elements */
    smg_layout outer, inner; /* of the axes that the loop over i goes over, and that the one over j does */
    int outer_axes[SMG_LAYOUT_AXES], inner_axes[SMG_LAYOUT_AXES];
    int outer_count, inner_count;
    int outer_registers, inner_registers;
    bool inner_only;    /* only the loop over j is opened */
    const char *i, *j;  /* register numbers */
    const char **coord; /* by kernel axis: element in the tile, "0" where not iterated */
    const char **valid; /* by kernel axis: name of the bool; NULL: always valid */
    bool *check;        /* by kernel axis: validity is asked for */
    bool *access_used;
    bool *alike;          /* by access: all lanes read the same element, by address */
    const char **address; /* by access: what is known so far */
    const char **start;   /* by access: the same before the loop over i */
    bool *indexed;        /* by access: what the index adds is in the address */
    const char **present; /* by access: then the condition that it is none that is absent; NULL: always */
    const char **memo;    /* by expression: its text */
    int *uses;            /* by expression: parents */
    int outer_braces, inner_braces;
    const char *step;    /* of a walk by all invocations: its number */
    int i_first, i_step; /* registers that the loop over i begins with and goes on by: those of one copy */
    int j_step;          /* registers taken at a time by the loop over j */
    int group, member;   /* flat form: elements a step along the last axis, and the one at hand */
    const char **vector; /* by access: name of the group that was loaded; NULL: by element */
} glsl_iter;

/* A string in the writer's arena; "" once memory is out (the writer's status says so). */
#define GLSL_STRING(w, ...) glsl_kept((w), smg_arena_format((w)->arena, __VA_ARGS__))
/* Behind the lines that its parts write. */
#define GLSL_LINE(w, ...) glsl_line((w), GLSL_STRING((w), __VA_ARGS__))

/* The parts from the bottom up: each uses those above it in this file, none the ones below. */

/* glsl_write.c */
void glsl_line(glsl_writer *w, const char *text);
const char *glsl_kept(glsl_writer *w, const char *text);
void glsl_fail(glsl_writer *w, smg_status code, const char *sentence);
void *glsl_zeroed(glsl_writer *w, int count, size_t size); /* never a zero-sized request */
void glsl_open(glsl_writer *w, const char *head);          /* "head {" */
void glsl_close(glsl_writer *w);

/* glsl_name.c */
smg_status glsl_names(glsl_writer *w);
const char *glsl_comment(glsl_writer *w, const char *text); /* one harmless line */

/* glsl_prim.c: numbers, kinds ("float") and primitives */
const char *glsl_kind(smg_kind kind);
const char *glsl_zero(smg_kind kind);
const char *glsl_convert(glsl_writer *w, const char *text, smg_kind from, smg_kind to);
const char *glsl_float(glsl_writer *w, double value);
const char *glsl_constant(glsl_writer *w, smg_kind kind, double value);
const char *glsl_apply(glsl_writer *w, smg_prim prim, const char *x, const char *y, const char *z);

/* glsl_size.c */
/* The condition, which the even form knows to be true where it relies on `size` being a multiple of `by`. */
const char *glsl_unless_even(glsl_writer *w, smg_size size, int64_t by, const char *condition);
const char *glsl_size(glsl_writer *w, smg_size size);               /* literal or zN */
void glsl_size_text(glsl_writer *w, smg_size size, smg_text *text); /* the whole polynomial */
void glsl_size_symbols(glsl_writer *w);                             /* marks those of w->sizes */
const char *glsl_symbol(glsl_writer *w, int symbol);
const char *glsl_plus(glsl_writer *w, const char *a, const char *b);
const char *glsl_times(glsl_writer *w, const char *text, smg_size stride);
const char *glsl_times_literal(glsl_writer *w, const char *text, int64_t factor);
const char *glsl_both(glsl_writer *w, const char *a, const char *b); /* a && b; NULL is true */

/* glsl_type.c: memory that is read by 64-bit addresses, as the language has it: its word, the macro that takes the
 * lane's element, what an element is, what stands around it to make it a float, bytes of one. */
typedef struct glsl_pointer {
    const char *word, *across, *element, *before, *behind;
    int bytes;
} glsl_pointer;
const glsl_pointer *glsl_pointer_to(glsl_writer *w, smg_type type);
/* Are two neighbours along the axis of the view one word, wherever its tile begins? */
bool glsl_lies_in_pairs(const glsl_writer *w, int tile, int axis);
/* The word of a pointer to two elements of 16 bits, and one of the two that begin at `first`, which is even. */
const char *glsl_pointer_to_pairs(glsl_writer *w);
const char *glsl_pair_element(glsl_writer *w, smg_type type, const char *pointer, const char *first, int half);
/* The word of a pointer to groups of SMG_PAIR or SMG_WIDE elements, which may begin at any of them. */
const char *glsl_pointer_to_groups(glsl_writer *w, smg_type type, int width);
/* Neighbours by the lane: `load` reads those of all lanes behind the address into locals that `declare` declares;
 * the text is the lane's own, a float. */
void glsl_declare_across(glsl_writer *w, smg_type type);
void glsl_load_across(glsl_writer *w, smg_type type, const char *address);
const char *glsl_take_across(glsl_writer *w, smg_type type);
void glsl_write_pointers(const glsl_writer *w, smg_text *out);
void glsl_write_lanes(const glsl_writer *w, smg_text *out); /* which of those neighbours are the lane's */
/* What a buffer's elements are declared as; an element as a value; a value as an element. */
const char *glsl_buffer_word(smg_type type);
const char *glsl_buffer_element(glsl_writer *w, int buffer, const char *address);
/* The same by the buffer's address, and the array of groups there. */
const char *glsl_element_at(glsl_writer *w, int buffer, const char *address);
const char *glsl_groups_at(glsl_writer *w, int buffer, int width);
const char *glsl_buffer_value(glsl_writer *w, smg_type type, const char *value, smg_kind kind);
/* What memory has of one element and of four neighbours: its word outside of buffers, as a value (float, vec4), and
 * back. */
const char *glsl_element_word(glsl_writer *w, smg_type type);
const char *glsl_element_value(glsl_writer *w, smg_type type, const char *memory);
const char *glsl_element_memory(glsl_writer *w, smg_type type, const char *value);
const char *glsl_group_word(smg_type type, int width);
const char *glsl_group_value(glsl_writer *w, smg_type type, int width, const char *memory);
const char *glsl_group_memory(glsl_writer *w, smg_type type, int width, const char *value);
/* The word of a local of one element or of a group; its zero; what is of one type as another one. */
const char *glsl_local_word(glsl_writer *w, smg_type type, int group);
const char *glsl_zero_memory(glsl_writer *w, smg_type type, int group);
const char *glsl_memory_as(glsl_writer *w, smg_type from, smg_type to, int group, const char *memory);
/* Of buffers: what groups are declared as; a group as a local of the type, or as a vec2 or vec4; and back from that. */
const char *glsl_buffer_group_word(const glsl_writer *w, smg_type type, int width);
const char *glsl_buffer_group_as(glsl_writer *w, smg_type from, smg_type to, int width, const char *memory);
const char *glsl_buffer_group_memory(glsl_writer *w, smg_type type, int width, const char *value);
/* One of eight 16-bit elements that are a uvec4, as a float. */
const char *glsl_eight_value(glsl_writer *w, smg_type type, const char *eight, int member);

/* glsl_base.c */
const char *glsl_base(glsl_writer *w, int axis); /* at_..., "0" for a whole axis */
/* The slot of the step at hand, where it is known; -1: the loop's step decides. */
int glsl_slot_number(const glsl_writer *w, const smg_tile *tile);
const char *glsl_slice(glsl_writer *w, int tile); /* "t_next[1]", of one slot; "t_next" */
/* What is to be added to the place of an element of a shared tile: where a slot begins that the loop's step decides. */
const char *glsl_slot(glsl_writer *w, const smg_tile *tile);

/* glsl_blocks.c: what an access's offset is, what the base of a term adds to it, what an element of the tile does along
 * the axis, a literal number of them, and the place of the sum in memory. */
const char *glsl_offset_part(glsl_writer *w, const smg_access *access);
const char *glsl_base_part(glsl_writer *w, const smg_access *access, int term);
const char *glsl_address_number(glsl_writer *w, const smg_access *access, int axis, int64_t number);
const char *glsl_address_part(glsl_writer *w, const smg_access *access, int axis, const char *at);
/* Is its buffer in blocks that each term goes by? */
bool glsl_by_blocks(const glsl_writer *w, const smg_access *access);
/* The number that glsl_address_number gives, in elements; false: the run's sizes say. */
bool glsl_address_distance(const glsl_writer *w, const smg_access *access, int axis, int64_t number, int64_t *out);
const char *glsl_place(glsl_writer *w, const smg_access *access, const char *address);

/* glsl_range.c */
void glsl_range(glsl_writer *w, int loop); /* first_ and end_ of a loop with a range, once; by instruction */
const char *glsl_loop_first(glsl_writer *w, int loop);
const char *glsl_loop_end(glsl_writer *w, int loop);

/* glsl_layout.c */
void glsl_lanes(glsl_writer *w); /* local, and what lanes add to coordinates */
/* What the lane adds to the coordinate along an axis, by its number in the workgroup, and as it is known best; and what
 * a register's number does. */
const char *glsl_local_part(glsl_writer *w, const smg_layout *layout, int axis);
const char *glsl_lane_part(glsl_writer *w, const smg_layout *layout, int axis);
/* What its subgroup adds, in kernels whose lanes are numbered. */
const char *glsl_subgroup_part(glsl_writer *w, const smg_layout *layout, int axis);
const char *glsl_register_part(glsl_writer *w, const smg_layout *layout, int axis, const char *number);
/* The register, in a tile of this layout, of the element at hand. */
const char *glsl_register_place(glsl_writer *w, const glsl_iter *it, const smg_layout *of);
/* The same for what the leaf, of a tile of that layout, reads for the element at hand. */
const char *glsl_register_at(glsl_writer *w, const glsl_iter *it, const smg_layout *of, const smg_kleaf *leaf);
/* The condition that picks one of the lanes that hold the same element; NULL when there is only one. */
const char *glsl_once(glsl_writer *w, const glsl_iter *it);
/* Where the uppermost lanes are whole copies of the others, they may share out what is done once: the condition that
 * picks one lane of a copy (NULL: always), how many copies take turns with the outer registers, and the condition
 * that picks one of them (NULL: there is one). */
const char *glsl_once_a_copy(glsl_writer *w, const glsl_iter *it);
int glsl_sharers(const glsl_writer *w, const glsl_iter *it);
const char *glsl_sharer(glsl_writer *w, const glsl_iter *it, int copy);

/* glsl_register.c */
const char *glsl_matrix_word(glsl_writer *w, smg_fragments use, const char *element); /* the type */
const char *glsl_matrix_of(glsl_writer *w, smg_fragments use);                        /* of the kernel's elements */
/* An element of a register tile, from what memory has of it; of a factor, from one half of a word. */
const char *glsl_register_element(glsl_writer *w, const smg_tile *tile, const char *memory);
const char *glsl_factor_half(glsl_writer *w, const char *word, int half);
const char *glsl_register(glsl_writer *w, int tile, const char *place);

/* glsl_iter.c */
void glsl_iter_init(glsl_writer *w, glsl_iter *it);
/* The elements of a layout: registers of the outer axes by i, of the others by j. */
void glsl_iter_over(glsl_writer *w, glsl_iter *it, const smg_layout *layout, const int *outer, int outer_count);
/* Those of the instruction. */
void glsl_iter_of(glsl_writer *w, glsl_iter *it, const smg_instr *instr);
/* The sums of a product: rows by i, columns by j; the loop over k stands around both. */
void glsl_iter_of_sums(glsl_writer *w, glsl_iter *it, const smg_instr *product);
void glsl_check_axes(glsl_iter *it, const int *axes, int count);
bool glsl_is_outer(const glsl_iter *it, int axis);
/* Is every element of a tile of the axis valid, whatever the symbols are? */
bool glsl_always_valid(const glsl_writer *w, int axis);
/* Is the element `coord` of the axis' tile inside the axis? */
const char *glsl_valid_text(glsl_writer *w, int axis, const char *coord);
const char *glsl_all_valid(glsl_writer *w, const glsl_iter *it, const int *axes, int count);

/* glsl_tile.c: the place of the current element, and of the group of a wide shared tile that starts there, as its type
 * has it. */
const char *glsl_tile_element(glsl_writer *w, const glsl_iter *it, int tile);
const char *glsl_tile_group(glsl_writer *w, const glsl_iter *it, int tile);
/* Eight neighbours of 16 bits to a shared tile in runs, word by word. */
void glsl_put_in_runs(glsl_writer *w, const glsl_iter *it, int tile, const char *value);
/* The same as values: a float, a vec4; also of a view. */
const char *glsl_tile_value(glsl_writer *w, const glsl_iter *it, int tile);
const char *glsl_tile_group_value(glsl_writer *w, const glsl_iter *it, int tile);
/* Eight of a view's 16-bit elements, from the current one on, as a uvec4. */
const char *glsl_view_eight(glsl_writer *w, const glsl_iter *it, int tile);

/* glsl_access.c */
/* p of every access used, and what is noted of bad indices; behind all loops that is reported. */
void glsl_hoist(glsl_writer *w, glsl_iter *it);
void glsl_report(glsl_writer *w, const glsl_iter *it);
void glsl_hoist_direct(glsl_writer *w, glsl_iter *it, int access); /* q: with the outer axes' part */
/* The address without an index from data: of a buffer in no blocks; and wherever it lies. */
const char *glsl_direct_address(glsl_writer *w, const glsl_iter *it, int access);
const char *glsl_address(glsl_writer *w, const glsl_iter *it, int access);
const char *glsl_iota(glsl_writer *w, glsl_iter *it, int access);
/* The name of a local that holds the condition; NULL stays NULL: always true. */
const char *glsl_named_condition(glsl_writer *w, const char *condition, int number);

/* glsl_expr.c */
void glsl_expr_prepare(glsl_writer *w, glsl_iter *it, smg_expr expr);
const char *glsl_expr_text(glsl_writer *w, glsl_iter *it, smg_expr expr);
void glsl_expr_forget(glsl_writer *w, glsl_iter *it); /* temporaries went out of scope */
const char *glsl_load(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf);
/* q of every access used, and indices that hang on outer axes; inside: the condition that these are in their tiles. */
void glsl_hoist_outer(glsl_writer *w, glsl_iter *it, const char *inside);
/* The address with what its index adds, if it has one. That it may be absent adds to *io_valid; NULL: of a store. */
const char *glsl_indexed_address(glsl_writer *w, glsl_iter *it, int access, const char **io_valid);

/* glsl_loops.c */
void glsl_outer_open(glsl_writer *w, glsl_iter *it);
void glsl_outer_close(glsl_writer *w, glsl_iter *it);
void glsl_inner_open(glsl_writer *w, glsl_iter *it);
void glsl_inner_close(glsl_writer *w, glsl_iter *it);
/* All invocations walk over a tile's elements together, it->group neighbours a step. */
void glsl_walk_open(glsl_writer *w, glsl_iter *it, const smg_instr *walk);
void glsl_walk_close(glsl_writer *w, glsl_iter *it);
/* Splits the flat k of a product into the coordinates of the contracted axes. */
void glsl_split_k(glsl_writer *w, glsl_iter *it, const smg_instr *product, const char *k);
/* Those of the row at hand. Rows beyond a ragged tile repeat its last row: their sums are not used. */
void glsl_row_coordinates(glsl_writer *w, glsl_iter *it);

/* glsl_group.c */
/* The condition on the run's sizes under which the access's groups are aligned; NULL: they always are. */
const char *glsl_aligned(glsl_writer *w, int access, smg_wide wide);
/* Loads what the lane owns of one outer register into its `array`; opens and closes the inner loop. */
void glsl_load_inner(glsl_writer *w, glsl_iter *it, const smg_kleaf *leaf, smg_wide wide, const char *array,
                     smg_kind kind);
void glsl_store_group(glsl_writer *w, glsl_iter *it, int access, int width, const char *value);
/* The groups among an expression's loads, of the elements at hand. */
void glsl_load_groups(glsl_writer *w, glsl_iter *it, smg_expr expr, smg_wide wide);
void glsl_forget_groups(glsl_writer *w, glsl_iter *it); /* of no use for the next elements */
/* SET of what the lane owns of one outer register, by elements or by groups; opens and closes the inner loop. */
void glsl_set_inner(glsl_writer *w, glsl_iter *it, const smg_instr *set);
/* What a plain load reads of one element or a group, as the buffer has it. */
const char *glsl_load_memory(glsl_writer *w, glsl_iter *it, int access);

/* glsl_stage.c */
void glsl_stage(glsl_writer *w, const smg_instr *instr, int at);
void glsl_fetch(glsl_writer *w, const smg_instr *instr, int at);
/* Writes what may work ahead, for the step that it works for. */
void glsl_ahead(glsl_writer *w, const smg_instr *instr, int at, void (*write)(glsl_writer *w, const smg_instr *instr));
void glsl_put(glsl_writer *w, const smg_instr *instr, int at);
void glsl_staging(glsl_writer *w, int tile); /* declares the registers of a staging tile */

/* glsl_whole.c: whole matrices between memory and registers. The condition under which all of the instruction's
 * elements are valid and aligned; NULL: always. What runs then, in a block of its own. */
const char *glsl_whole(glsl_writer *w, const smg_instr *instr, int access);
void glsl_load_matrices(glsl_writer *w, const smg_instr *instr, const char *whole);
void glsl_store_matrices(glsl_writer *w, const smg_instr *instr, const char *whole);
void glsl_spill_matrices(glsl_writer *w, const smg_instr *spill, const char *whole);
/* Opaque sums: SET to a number, LEAVE and GATHER. */
void glsl_set_matrices(glsl_writer *w, const smg_instr *instr);
void glsl_leave_matrices(glsl_writer *w, const smg_instr *instr);
void glsl_gather_matrices(glsl_writer *w, const smg_instr *instr);
/* Factors that are loaded by runs from instruction `at` on: the loads of all of them stand in front of what becomes of
 * the first, since drivers do not move them there. Returns the instruction behind them; `at`: there are none. */
int glsl_load_runs(glsl_writer *w, int at);
bool glsl_is_loaded_ahead(const glsl_writer *w, int tile);
/* The matrix of that number, of a factor that was loaded ahead. */
void glsl_make_matrix(glsl_writer *w, int tile, int64_t number, const char *name);
void glsl_set_ahead(glsl_writer *w, const smg_instr *instr, int at);
void glsl_take_runs(glsl_writer *w, const smg_instr *instr);

/* glsl_matrix.c: the registers of a tile, declared; a product by matrices, and its factors */
void glsl_registers(glsl_writer *w, int tile);
void glsl_matrix_mma(glsl_writer *w, const smg_instr *instr);
void glsl_take(glsl_writer *w, const smg_instr *instr, int at);

/* glsl_sums.c: the sums of a product that is written out, those of neighbouring columns as one vector meanwhile. */
typedef struct glsl_sums {
    const glsl_iter *it; /* of the sums */
    int tile, group;     /* columns of a vector: 1, 2 or 4 */
} glsl_sums;
glsl_sums glsl_sums_of(const glsl_writer *w, const glsl_iter *it, int tile);
void glsl_open_sums(glsl_writer *w, const glsl_sums *sums);
/* Row i's element of the left factor, a float, times the right factor's columns from j on, a vector. */
void glsl_add_products(glsl_writer *w, const glsl_sums *sums, int i, int j, const char *left, const char *right);
void glsl_close_sums(glsl_writer *w, const glsl_sums *sums);
const char *glsl_vector(int width);                                        /* "vec4"; of one: "float" */
const char *glsl_vector_of(glsl_writer *w, const char **parts, int width); /* of its parts */

/* MMA of other kinds: glsl_direct.c, of factors by address; glsl_own.c, whose left factor is a register tile of the
 * scalar tier; glsl_pairs.c, with partial sums. glsl_mma.c: all of them, and that of shared tiles and views. */
void glsl_direct_mma(glsl_writer *w, const smg_instr *instr);
void glsl_own_mma(glsl_writer *w, const smg_instr *instr);
void glsl_pairs(glsl_writer *w, const smg_instr *instr);
void glsl_mma(glsl_writer *w, const smg_instr *instr);

/* glsl_store.c: STORE */
void glsl_write_store(glsl_writer *w, const smg_instr *instr);

/* glsl_reduce.c, glsl_exchange.c */
void glsl_reduce(glsl_writer *w, const smg_instr *instr);
const char *glsl_combined(glsl_writer *w, smg_combine combine, const char *a, const char *b);
void glsl_join(glsl_writer *w, const smg_instr *instr);
void glsl_leave(glsl_writer *w, const smg_instr *instr);
void glsl_fold(glsl_writer *w, const smg_instr *instr);
void glsl_gather(glsl_writer *w, const smg_instr *instr);

/* glsl_code.c: the inside of main; glsl_head.c: everything in front of it */
void glsl_code(glsl_writer *w);
void glsl_head(glsl_writer *w, smg_text *out);
smg_status glsl_interface_of(glsl_writer *w, smg_glsl_interface *out_interface);

#endif
