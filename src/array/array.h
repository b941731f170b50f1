/* array: arrays of the host, as commands and tests have them: made up, or from and to files.
 *
 * Takes:    an interface, or an input of one, and sizes; the path of an npy file; what a run gave.
 * Gives:    smg_arrays (smg/arrays.h), smg_tensor with memory in an arena; npy files; elements as numbers.
 * Promises: what is made up depends only on the seed and the input's name, so that a device, the interpreter and a
 *           second run see the same numbers; what is read is checked against the input.
 * Does not: know graphs; touch a device.
 */
#ifndef SMG_ARRAY_H
#define SMG_ARRAY_H

#include "array/npy.h"
#include "bundle/interface.h"
#include "smg/arrays.h"

/* An array for the input at these sizes, data in the arena. Random (seeded): floats in [-1, 1), indices of tables
 * within them, other integers and bools 0 or 1. */
smg_status smg_tensor_fill_port(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                                const int64_t *symbols, smg_fill how, uint64_t seed, smg_arena *arena,
                                smg_tensor *out_tensor);
/* A .npy file, converted to the input's type where that loses nothing; dims as in the file. */
smg_status smg_tensor_load(smg_context *ctx, const smg_port *port, const char *path, smg_arena *arena,
                           smg_tensor *out_tensor);
/* Elements [from, from + count) as smg_tensor_get reads them, which looks the type up by its name each time. */
void smg_tensor_read(const smg_tensor *tensor, int64_t from, int64_t count, double *out);
/* What smg_tensor_get reads back. */
void smg_tensor_set(smg_tensor *tensor, int64_t index, double value);

/* array_signature.c: the interface in words, which point into the arena. Both are borrowed by what is made of it. */
smg_status smg_signature_make(smg_arena *arena, const smg_interface *interface, const smg_signature **out_signature);
const smg_interface *smg_signature_interface(const smg_signature *signature);

/* array_inputs.c */
struct smg_arrays {
    smg_context *ctx;
    smg_arena *arena;
    const smg_interface *interface;
    smg_tensor *inputs, *outputs;
    smg_arena **rooms;      /* per input: of its array; NULL: it has none */
    smg_arena *output_room; /* of arrays that are no run's; NULL: there are none */
    bool *given;            /* per input: sizes follow it */
    int64_t *symbols;       /* per symbol, once they are settled */
    smg_dim *dims;          /* the same by name */
    bool settled;
};

#endif
