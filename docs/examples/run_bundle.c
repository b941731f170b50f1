/* Runs a bundle: run_bundle minilm.smgb input_ids 101 7592 102
 *
 * The named input of integers is one row of the numbers that follow; every other input of the model must be one that may
 * be left out. Prints the first numbers of the first output. Links libsmg-rt and nothing else of smg. */
#include <smg/rt.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_model *model = NULL;
    smg_tensor out = {0};
    int32_t ids[512];
    if (argc < 4 || argc - 3 > 512) {
        fprintf(stderr, "usage: run_bundle BUNDLE INPUT NUMBER.. (at most 512)\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) ids[i - 3] = (int32_t)strtol(argv[i], NULL, 10);
    const smg_tensor in = {.name = argv[2], .type = "i32", .rank = 2, .dims = {1, argc - 3}, .data = ids};
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = smg_model_open_bundle(ctx, argv[1], NULL, &model);
    if (status == SMG_OK) {
        smg_tensor first;
        smg_model_output(model, 0, &first);
        out.name = first.name;
        status = smg_model_run(model, &in, 1, &out, 1);
    }
    if (status == SMG_OK)
        printf("%s by class %s: %g %g ..\n", out.name, smg_model_class(model), (double)((float *)out.data)[0],
               (double)((float *)out.data)[1]);
    else
        fprintf(stderr, "%s\n", smg_context_error(ctx));
    smg_model_close(model);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
