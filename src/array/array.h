/* array: arrays of the host, as commands and tests have them: made up, or from and to files.
 *
 * Takes:    an input of an interface and sizes; the path of an npy file; what a run gave.
 * Gives:    smg_tensor with memory in an arena; npy files; elements as numbers.
 * Promises: what is made up depends only on the seed and the input's name, so that a device, the interpreter and a
 *           second run see the same numbers; what is read is checked against the input.
 * Does not: know graphs; touch a device.
 */
#ifndef SMG_ARRAY_H
#define SMG_ARRAY_H

#include "array/npy.h"
#include "bundle/interface.h"

typedef enum smg_fill { SMG_FILL_RANDOM, SMG_FILL_ZEROS, SMG_FILL_ONES } smg_fill;

/* An array for the input at these sizes, data in the arena. Random (seeded): floats in [-1, 1), indices of tables
 * within them, other integers and bools 0 or 1. */
smg_status smg_tensor_fill_port(smg_context *ctx, const smg_interface *interface, const smg_port *port,
                                const int64_t *symbols, smg_fill how, uint64_t seed, smg_arena *arena,
                                smg_tensor *out_tensor);
/* A .npy file, converted to the input's type where that loses nothing; dims as in the file. */
smg_status smg_tensor_load(smg_context *ctx, const smg_port *port, const char *path, smg_arena *arena,
                           smg_tensor *out_tensor);
smg_status smg_tensor_save(smg_context *ctx, const char *path, const smg_tensor *tensor);
int64_t smg_tensor_elements(const smg_tensor *tensor);
/* Element `index` as a number, and back; a tensor without a type is f32. */
double smg_tensor_get(const smg_tensor *tensor, int64_t index);
void smg_tensor_set(smg_tensor *tensor, int64_t index, double value);

#endif
