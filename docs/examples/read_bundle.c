/* Reads a bundle through callbacks, as an app does whose files lie inside of a package (an Android asset: AAsset_seek64
 * and AAsset_read in the place of fseek and fread): read_bundle minilm.smgb
 *
 * Prints what the model takes and gives. Links libsmg-rt and nothing else of smg. */
#include <smg/rt.h>
#include <stdio.h>

static bool read_asset(void *user, int64_t offset, void *into, size_t bytes) {
    FILE *asset = user;
    return fseek(asset, (long)offset, SEEK_SET) == 0 && fread(into, 1, bytes, asset) == bytes;
}

static void print(const char *kind, const smg_tensor *t) {
    printf("%s %s %s, axes:", kind, t->name, t->type);
    for (int d = 0; d < t->rank; d++) printf(t->dims[d] < 0 ? " any" : " %lld", (long long)t->dims[d]);
    printf("\n");
}

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_model *model = NULL;
    smg_tensor t;
    FILE *asset = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (asset == NULL || fseek(asset, 0, SEEK_END) != 0) {
        fprintf(stderr, "usage: read_bundle BUNDLE, a file that there is\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    const smg_bundle_reader reader = {.bytes = ftell(asset), .read = read_asset, .user = asset};
    smg_status status = smg_model_open_bundle_reader(ctx, &reader, NULL, &model);
    fclose(asset); /* the model has what it needs */
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    for (int i = 0; smg_model_input(model, i, &t); i++) print("input", &t);
    for (int i = 0; smg_model_output(model, i, &t); i++) print("output", &t);
    smg_model_close(model);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
