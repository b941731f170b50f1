/* One ONNX file at a time, made byte by byte (onnx_bytes.h), converted and thrown away: the state of a cmocka test. */
#ifndef TESTS_ONNX_MADE_H
#define TESTS_ONNX_MADE_H

#include "onnx/onnx.h"
#include "support/onnx_bytes.h"

typedef struct onnx_made {
    smg_context *ctx;
    pb p; /* the file */
    smg_onnx *model;
    smg_graph *graph;
} onnx_made;

int onnx_made_set_up(void **state);
int onnx_made_tear_down(void **state);
void onnx_made_clear(onnx_made *m); /* ready for the next file; the error is cleared too */
/* Reads the bytes, with external data below `folder` (NULL: none), and makes the graph. The test fails where status,
 * graph and sentence do not go together. */
smg_status onnx_made_convert(onnx_made *m, const char *folder);
void onnx_made_expect_ok(const onnx_made *m, smg_status status);
/* The status, and that the sentence has `part`; clears. */
void onnx_made_expect_failure(onnx_made *m, smg_status status, smg_status want, const char *part);

#endif
