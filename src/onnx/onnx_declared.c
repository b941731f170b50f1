/* Inputs and outputs as a file declares them: for people, also when the file cannot be converted. */
#include "onnx/onnx_private.h"

static void write_type(const pb_value_info *info, smg_text *text) {
    const Smg__Pb__TensorType *type = info->type ? info->type->tensor_type : NULL;
    if (!type) {
        smg_text_add(text, "no tensor");
        return;
    }
    smg_text_add(text, smg_onnx_type_word(type->elem_type));
    smg_text_add(text, "[");
    if (!type->shape) smg_text_add(text, "?");
    for (size_t i = 0; type->shape && i < type->shape->n_dim; i++) {
        const pb_dimension *dim = type->shape->dim[i];
        if (i > 0) smg_text_add(text, ", ");
        if (dim->value_case == SMG__PB__DIMENSION__VALUE_DIM_VALUE) {
            smg_text_addf(text, "%lld", (long long)dim->dim_value);
        } else if (dim->value_case == SMG__PB__DIMENSION__VALUE_DIM_PARAM && dim->dim_param[0]) {
            smg_text_add(text, dim->dim_param);
        } else {
            smg_text_add(text, "?");
        }
    }
    smg_text_add(text, "]");
}

static smg_status list(smg_onnx *m, const pb_value_info *info, bool output) {
    smg_text text;
    smg_text_init(&text, m->ctx);
    write_type(info, &text);
    smg_status status = smg_text_status(&text);
    const char *type = status == SMG_OK ? smg_arena_string(m->arena, smg_text_cstr(&text)) : NULL;
    smg_text_free(&text);
    smg_onnx_declared *row = type ? SMG_ARRAY_PUSH(m->arena, &m->declared) : NULL;
    if (!row) return SMG_MEMORY;
    *row = (smg_onnx_declared){info->name, output, type};
    return SMG_OK;
}

smg_status smg_onnx_list_declared(smg_onnx *model) {
    const pb_graph *g = model->proto->graph;
    smg_map *weights = NULL;
    void *known = NULL;
    SMG_TRY(smg_map_create(model->arena, &weights));
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        SMG_TRY(smg_map_set(weights, name, strlen(name), weights));
    }
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = g->input[i]->name;
        if (!smg_map_get(weights, name, strlen(name), &known)) SMG_TRY(list(model, g->input[i], false));
    }
    for (size_t i = 0; i < g->n_output; i++) SMG_TRY(list(model, g->output[i], true));
    return SMG_OK;
}

int smg_onnx_declared_count(const smg_onnx *model) {
    return model->declared.count;
}

const smg_onnx_declared *smg_onnx_declared_at(const smg_onnx *model, int index) {
    return index >= 0 && index < model->declared.count ? &model->declared.items[index] : NULL;
}
