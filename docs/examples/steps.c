/* A model that keeps something from run to run: steps counter.smgb x 5
 *
 * Runs it so many times on ones, and prints how the first element of its first output goes on. What a step leaves for the
 * next one stays on the device; beginning anew is one call. */
#include <smg/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dims that the model leaves open are 1. */
static smg_status make_ones(const smg_model *model, const char *name, smg_tensor *out) {
    int64_t count = 1;
    bool found = false;
    for (int i = 0; i < smg_model_input_count(model) && !found; i++)
        found = smg_model_input(model, i, out) && strcmp(out->name, name) == 0 && strcmp(out->type, "f32") == 0;
    if (!found) return SMG_NOT_FOUND;
    for (int d = 0; d < out->rank; d++) {
        if (out->dims[d] < 0) out->dims[d] = 1;
        count *= out->dims[d];
    }
    float *ones = malloc((size_t)count * sizeof(*ones));
    if (ones == NULL) return SMG_MEMORY;
    for (int64_t i = 0; i < count; i++) ones[i] = 1;
    out->data = ones;
    return SMG_OK;
}

static smg_status run_steps(smg_model *model, const smg_tensor *in, int count) {
    smg_tensor first, out = {0};
    smg_model_output(model, 0, &first);
    out.name = first.name;
    for (int i = 0; i < count; i++) {
        smg_status status = smg_model_run(model, in, 1, &out, 1); /* the state is not named: it goes on */
        if (status != SMG_OK) return status;
        printf("%s%g", i > 0 ? " " : "", (double)((float *)out.data)[0]);
    }
    printf("\n");
    return SMG_OK;
}

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_model *model = NULL;
    smg_tensor in = {0};
    const char *input, *output;
    if (argc != 4) {
        fprintf(stderr, "usage: steps BUNDLE INPUT STEPS\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = smg_model_open_bundle(ctx, argv[1], NULL, &model);
    for (int i = 0; smg_model_state(model, i, &input, &output); i++)
        printf("%s is %s of the step before\n", input, output);
    if (status == SMG_OK) status = make_ones(model, argv[2], &in);
    for (int again = 0; again < 2 && status == SMG_OK; again++) {
        status = run_steps(model, &in, (int)strtol(argv[3], NULL, 10));
        if (status == SMG_OK) status = smg_model_reset_state(model, NULL);
    }
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    free(in.data);
    smg_model_close(model);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
