/* See the header. */
#include "support/onnx_made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

int onnx_made_set_up(void **state) {
    onnx_made *m = calloc(1, sizeof *m);
    *state = m;
    return m && smg_context_create(NULL, &m->ctx) == SMG_OK ? 0 : -1;
}

void onnx_made_clear(onnx_made *m) {
    smg_graph_destroy(m->graph);
    smg_onnx_close(m->model);
    pb_free(&m->p);
    m->graph = NULL;
    m->model = NULL;
    smg_context_clear_error(m->ctx);
}

int onnx_made_tear_down(void **state) {
    onnx_made *m = *state;
    onnx_made_clear(m);
    smg_context_destroy(m->ctx);
    free(m);
    return 0;
}

smg_status onnx_made_convert(onnx_made *m, const char *folder) {
    smg_status status = smg_onnx_open_bytes(m->ctx, "made.onnx", m->p.data, m->p.size, folder, &m->model);
    if (status == SMG_OK) status = smg_onnx_make_graph(m->model, &m->graph);
    assert_true((status == SMG_OK) == (m->graph != NULL));
    assert_true((status == SMG_OK) == (smg_context_error(m->ctx)[0] == '\0'));
    return status;
}

void onnx_made_expect_ok(const onnx_made *m, smg_status status) {
    if (status != SMG_OK) fail_msg("%s", smg_context_error(m->ctx));
}

void onnx_made_expect_failure(onnx_made *m, smg_status status, smg_status want, const char *part) {
    if (status != want || !strstr(smg_context_error(m->ctx), part))
        fail_msg("status %d (%s), wanted %d with '%s'", (int)status, smg_context_error(m->ctx), (int)want, part);
    onnx_made_clear(m);
}
