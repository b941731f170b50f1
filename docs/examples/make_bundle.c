/* What `smg compile` and `smg run --check --profile` do, in C: make_bundle MODEL model.smgb h200,careful
 *
 * Writes a bundle of a Hugging Face directory, an ONNX file or a graph text file, and tells what is in it. Then the
 * model runs where the program does, on made-up inputs: its outputs are compared with the reference, and each kernel's
 * time stands beside its price. Links libsmg, which compiles. */
#include <smg/bundle.h>
#include <smg/compile.h>
#include <smg/measure.h>
#include <stdio.h>
#include <string.h>

static smg_status write_bundle(smg_context *ctx, smg_source *source, const char *path, char *names) {
    const char *targets[16];
    smg_bundle_writing writing = {.targets = targets};
    smg_bundle_file *file = NULL;
    for (char *name = strtok(names, ","); name != NULL && writing.target_count < 16; name = strtok(NULL, ","))
        targets[writing.target_count++] = name;
    smg_status status = smg_source_write_bundle(source, &writing, path);
    if (status == SMG_OK) status = smg_bundle_file_open(ctx, path, &file);
    for (int i = 0; status == SMG_OK && i < smg_bundle_file_facts(file)->class_count; i++) {
        smg_bundle_class c;
        status = smg_bundle_file_class(file, i, &c);
        if (status == SMG_OK) printf("class %s: %lld bytes beside the weights\n", c.name, (long long)c.bytes);
    }
    smg_bundle_file_close(file);
    return status;
}

/* All inputs, of the usual sizes. */
static smg_status fill(smg_arrays *arrays) {
    int count = 0;
    smg_status status = smg_arrays_settle(arrays, NULL);
    const smg_tensor *inputs = smg_arrays_inputs(arrays, &count);
    for (int i = 0; i < count && status == SMG_OK; i++)
        status = smg_arrays_fill(arrays, inputs[i].name, SMG_FILL_OWN, 1);
    return status;
}

static smg_status check(smg_model *model, smg_arrays *arrays) {
    smg_check *result = NULL;
    smg_status status = smg_compilation_check(smg_model_compilation(model), arrays, &result);
    for (int i = 0; status == SMG_OK && i < result->count; i++)
        printf("%s: off by %.1g, at most %.1g: %s\n", result->rows[i].output, result->rows[i].max_rel,
               result->rows[i].tolerance, result->rows[i].pass ? "passed" : "FAILED");
    smg_check_destroy(result);
    return status;
}

static smg_status run(smg_model *model, smg_arrays *arrays) {
    int in = 0, out = 0;
    const smg_tensor *inputs = smg_arrays_inputs(arrays, &in);
    smg_tensor *outputs = smg_arrays_outputs(arrays, &out);
    smg_status status = smg_model_set_profile(model, true);
    if (status == SMG_OK) status = smg_model_run(model, inputs, in, outputs, out);
    if (status == SMG_OK) status = check(model, arrays);
    for (int i = 0; status == SMG_OK && i < smg_model_step_count(model); i++) {
        smg_step_info step;
        smg_model_step(model, i, &step);
        printf("%s: %.1f us, %.1f by its price\n", step.name, step.seconds * 1e6, step.estimate * 1e6);
    }
    return status;
}

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_source *source = NULL;
    smg_model *model = NULL;
    smg_arrays *arrays = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: make_bundle MODEL BUNDLE TARGET[,TARGET..]\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = smg_source_load(ctx, argv[1], NULL, &source);
    if (status == SMG_OK) status = write_bundle(ctx, source, argv[2], argv[3]);
    if (status == SMG_OK) status = smg_source_open_model(source, NULL, &model);
    if (status == SMG_OK) status = smg_arrays_create(ctx, smg_source_get_facts(source)->signature, &arrays);
    if (status == SMG_OK) status = fill(arrays);
    if (status == SMG_OK) status = run(model, arrays);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    smg_model_close(model);
    smg_arrays_destroy(arrays);
    smg_source_unload(source);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
