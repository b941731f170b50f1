/* Integers of the graph as functions of where they stand: base + sum of scale * index.
 *
 * Exporters spell regions, positions and shapes as tensors of indices. Whatever operators made such a
 * tensor, reading its graph backwards for one element, with the element's coordinates as variables,
 * gives an affine form, or says that there is none. Used where a meaning depends on it (scattering to a
 * region, a shape computed from positions), never to recognise an operator sequence.
 */
#ifndef SMG_ONNX_FORM_H
#define SMG_ONNX_FORM_H

#include "onnx/onnx_build.h"

typedef struct onnx_form {
    smg_size base;
    int64_t scale[SMG_MAX_RANK]; /* per variable */
} onnx_form;

/* The variables: index k runs over [0, extent[k]). */
typedef struct onnx_forms {
    smg_onnx_build *b;
    int count;
    smg_size extent[SMG_MAX_RANK];
    int steps_left; /* nodes that may still be visited */
} onnx_forms;

void smg_onnx_forms_begin(smg_onnx_build *b, int count, const smg_size *extents, onnx_forms *out_forms);
onnx_form smg_onnx_form_of(smg_onnx_build *b, smg_size base);
/* The element at coordinates `at` (one form per axis) of a value of integer or bool type, or of floats
 * that are whole numbers. false: no affine form; nothing is recorded then. */
bool smg_onnx_form_at(onnx_forms *forms, smg_value value, const onnx_form *at, onnx_form *out);

#endif
