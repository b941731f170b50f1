/* Parts that encoders are put together from. All are sticky through the graph's builders. */
#ifndef SMG_MODEL_PRIVATE_H
#define SMG_MODEL_PRIVATE_H

#include "model/model.h"

typedef struct model_builder {
    smg_graph *g;
    const smg_model_source *source;
    const char *prefix; /* in front of every tensor's name */
    double eps;         /* of LayerNorm */
    const char *activation;
    smg_value number_one, number_half; /* made once */
} model_builder;

/* Records `code` as the builder's failure. */
smg_value smg_model_fail(model_builder *b, smg_status code);
const char *smg_model_text(model_builder *b, const char *format, ...) SMG_PRINTF(2, 3);
/* Gives the value a name and returns it. */
smg_value smg_model_named(model_builder *b, smg_value value, const char *name);

/* The tensor `prefix + name`, f32, of the given rank (1 or 2) and dims. */
smg_value smg_model_weight(model_builder *b, const char *name, int rank, int64_t rows,
                           int64_t columns);
smg_value smg_model_map2(model_builder *b, const char *op, smg_value x, smg_value y);
smg_value smg_model_map1(model_builder *b, const char *op, smg_value x);
smg_value smg_model_number(model_builder *b, double value);
/* x @ weight^T + bias over the last axis of x[batch, sequence, in]; tensors <scope>.weight, .bias. */
smg_value smg_model_linear(model_builder *b, smg_value x, const char *scope, int64_t in,
                           int64_t out, const char *name);
smg_value smg_model_layer_norm(model_builder *b, smg_value x, const char *scope, int64_t width,
                               const char *name);
bool smg_model_activation_known(const char *name);
smg_value smg_model_activation(model_builder *b, smg_value x, const char *name);
/* softmax over the last axis (3) of scores[b, h, s, t]. */
smg_value smg_model_softmax(model_builder *b, smg_value scores, const char *name);
/* [batch, hidden] from hidden_state[batch, sequence, hidden] and mask f32[batch, sequence]. */
smg_value smg_model_pool(model_builder *b, smg_value hidden_state, smg_value mask, int64_t hidden);

#endif
