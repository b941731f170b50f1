/* bundle/interface.h: what a run needs to know of a model, whatever it was made from.
 *
 * A compiled graph has one and a bundle's file has one: names, types and dims of inputs and outputs, and what an input
 * is where nobody gives it. Symbols are those of the bundle, in its order.
 */
#ifndef SMG_INTERFACE_H
#define SMG_INTERFACE_H

#include "base/size.h"
#include "bundle/bundle.h"
#include "smg/tensor.h"

typedef enum smg_absent {
    SMG_ABSENT_REFUSED,
    SMG_ABSENT_ZEROS,
    SMG_ABSENT_ONES,
    SMG_ABSENT_STATE, /* what the run before left in the output `next`, in the first one zeros */
    SMG_ABSENT_COUNT
} smg_absent;

typedef struct smg_port {
    const char *name;
    smg_storage type; /* of the host's elements */
    int rank;
    smg_size dims[SMG_BUNDLE_RANK];
    smg_size below;    /* of an input: the rows of the smallest table that its elements index; SMG_SIZE_ZERO: of none */
    smg_absent absent; /* of an input: its elements where it is not given */
    int next;          /* of a state: the output */
} smg_port;

typedef struct smg_interface {
    smg_sizes *sizes;
    int input_count, output_count;
    smg_port *inputs, *outputs;
    int64_t *nominal; /* per symbol: what it is for who does not say */
} smg_interface;

/* Index of the input; NOT_FOUND lists those that there are. */
smg_status smg_interface_find_input(smg_context *ctx, const smg_interface *interface, const char *name, int *out_index);
/* A symbol by its name; NOT_FOUND lists those that there are. */
smg_status smg_sizes_find(smg_context *ctx, const smg_sizes *sizes, const char *name, int *out_symbol);
/* Sizes that a caller gives, into io_values (one per symbol); INVALID: not in [1, its maximum]. */
smg_status smg_sizes_give(smg_context *ctx, const smg_sizes *sizes, const smg_dim *dims, int count, int64_t *io_values);
/* Is every symbol among them? */
bool smg_sizes_all_given(const smg_sizes *sizes, const smg_dim *dims, int count);
/* Reads the symbols' values off the dims of arrays that are given for inputs (by name; others have no data or are not
 * there); INVALID names what disagrees. A symbol that no array has gets its default (one when NULL). */
smg_status smg_interface_sizes(smg_context *ctx, const smg_interface *interface, const smg_tensor *inputs, int count,
                               const int64_t *defaults, int64_t *out_values);
/* By the host or on the device. */
static inline bool smg_tensor_is_given(const smg_tensor *tensor) {
    return tensor->data != NULL || tensor->on != NULL;
}
/* Type (NULL: the port's), rank, dims and memory of an array for this input make sense; its dims need not fit. */
smg_status smg_port_check(smg_context *ctx, const smg_port *port, const smg_tensor *tensor, smg_storage *out_type,
                          int64_t *out_elements);
/* An array for this input at these sizes, without memory; *out_elements: how many there are. INVALID: too many. */
smg_status smg_port_shape(smg_context *ctx, const smg_interface *interface, const smg_port *port, const int64_t *values,
                          smg_tensor *out_tensor, int64_t *out_elements);
/* The state by its input's name; NOT_FOUND lists those that there are. */
smg_status smg_interface_find_state(smg_context *ctx, const smg_interface *interface, const char *name, int *out_input);
/* The state that is this output in the next run, by its input; -1: none. */
int smg_interface_state_of(const smg_interface *interface, int output);
/* Every element is 0, or 1. */
void smg_port_fill(smg_storage type, bool ones, int64_t count, void *out);
/* An array of integers in the other of i32 and i64; INVALID: an element that i32 does not hold. */
smg_status smg_port_convert(smg_context *ctx, const smg_port *port, const void *from, int64_t count, void *out);
/* Of an array of integers for an input that indexes tables: the first element outside of the smallest. */
bool smg_port_outside(const smg_interface *interface, const smg_port *port, const int64_t *values,
                      const smg_tensor *tensor, int64_t *out_element);

/* Lengths of rows, for an input of integers or bools: one number for each row where the input has no further axis, else
 * a mask that is 1 up to the row's length along the last axis and 0 behind it. */
typedef struct smg_lengths {
    const int64_t *rows;
    int64_t count;
} smg_lengths;
/* What may be said of them before there are sizes. UNSUPPORTED: the input takes none; INVALID, with the row and the
 * numbers: a length is below 0, or more than a row ever has. */
smg_status smg_lengths_check(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                             smg_lengths lengths);
/* Into an array of the port's type that is there. INVALID, with the row and the numbers: also a length above what a row
 * has at these sizes, or not one for each row. */
smg_status smg_lengths_put(smg_context *ctx, const smg_interface *interface, const smg_port *port, smg_lengths lengths,
                           smg_tensor *io_tensor);
/* Is the array of integers or bools that was given what the lengths say? INVALID with the row, the element and its
 * length. */
smg_status smg_lengths_compare(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                               smg_lengths lengths, const smg_tensor *tensor);

/* The same in the arena, its sizes in a pool of their own that has nothing else, with the maxima that `limits` (a pool
 * with the same symbols) has. */
smg_status smg_interface_copy(smg_arena *arena, const smg_interface *from, const smg_sizes *limits,
                              smg_interface **out_interface);
/* As bytes, and back. FORMAT: they are no interface. */
void smg_interface_write(const smg_interface *interface, smg_text *out);
smg_status smg_interface_read(smg_reader *r, smg_arena *arena, smg_interface **out_interface);
/* Do both have the same symbols in the same order? */
bool smg_sizes_same_symbols(const smg_sizes *a, const smg_sizes *b);

#endif
