/* Integers of the graph as forms (affine/) of where they stand.
 *
 * Exporters spell regions, positions and shapes as tensors of indices. Whatever operators made such a
 * tensor, reading its graph backwards for one element, with the element's coordinates as indices,
 * gives a form, or says that there is none. Used where a meaning depends on it (scattering to a
 * region, a shape computed from positions), never to recognise an operator sequence.
 */
#ifndef SMG_ONNX_FORM_H
#define SMG_ONNX_FORM_H

#include "affine/affine.h"
#include "onnx/onnx_build.h"

/* Index k of the forms runs over [0, extent[k]). */
typedef struct onnx_forms {
    smg_onnx_build *b;
    smg_exprs *exprs; /* scratch */
    smg_size extent[SMG_MAX_RANK];
    int steps_left; /* nodes that may still be visited */
    int depth;
} onnx_forms;

void smg_onnx_forms_begin(smg_onnx_build *b, int count, const smg_size *extents, onnx_forms *out_forms);
/* The element at coordinates `at` (one form per axis) of a value of integer or bool type, or of floats
 * that are whole numbers. false: no form; nothing is recorded then. */
bool smg_onnx_form_at(onnx_forms *forms, smg_value value, const smg_affine *at, smg_affine *out);

#endif
