/* Two models on one device, the second on what the first one wrote: two_models first.smgb second.smgb
 *
 * The first model's first output is the second one's first input, and stays on the device: nothing is copied. The first
 * model's input is f32, all ones, with 1 for every size that is open. Prints the first numbers of the last output. */
#include <smg/rt.h>
#include <stdio.h>
#include <stdlib.h>

/* A tensor for the port, with 1 in the place of sizes that are open; fills in io_port.on. */
static smg_status make_tensor(smg_model *model, smg_tensor *io_port, int64_t *out_elements) {
    *out_elements = 1;
    for (int d = 0; d < io_port->rank; d++) {
        if (io_port->dims[d] < 0) io_port->dims[d] = 1;
        *out_elements *= io_port->dims[d];
    }
    return smg_model_create_tensor(model, io_port->name, *out_elements, &io_port->on);
}

static smg_status upload_ones(smg_device_tensor *tensor, int64_t elements) {
    const float one = 1;
    smg_status status = SMG_OK;
    for (int64_t i = 0; i < elements && status == SMG_OK; i++) status = smg_tensor_upload(tensor, i, &one, 1);
    return status;
}

static smg_status run(smg_model *first, smg_model *second) {
    smg_tensor in, between, last, out = {0};
    int64_t elements = 0;
    smg_model_input(first, 0, &in);
    smg_model_output(first, 0, &between);
    smg_model_output(second, 0, &last);
    in.on = between.on = NULL;
    smg_status status = make_tensor(first, &in, &elements);
    if (status == SMG_OK) status = upload_ones(in.on, elements);
    if (status == SMG_OK) status = make_tensor(first, &between, &elements);
    if (status == SMG_OK) status = smg_model_run(first, &in, 1, &between, 1);
    if (status == SMG_OK) {
        smg_tensor next;
        smg_model_input(second, 0, &next);
        between.name = next.name; /* rank and dims are those that were written */
        out.name = last.name;
        status = smg_model_run(second, &between, 1, &out, 1);
    }
    if (status == SMG_OK)
        printf("%s: %g %g ..\n", out.name, (double)((float *)out.data)[0], (double)((float *)out.data)[1]);
    smg_tensor_destroy(in.on);
    smg_tensor_destroy(between.on);
    return status;
}

int main(int argc, char **argv) {
    smg_context *ctx = NULL;
    smg_device *device = NULL;
    smg_model *first = NULL, *second = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: two_models BUNDLE BUNDLE\n");
        return 2;
    }
    if (smg_context_create(NULL, &ctx) != SMG_OK) return 2;
    smg_status status = smg_device_open(ctx, NULL, &device);
    const smg_bundle_desc desc = {.on = device};
    if (status == SMG_OK) status = smg_model_open_bundle(ctx, argv[1], &desc, &first);
    if (status == SMG_OK) status = smg_model_open_bundle(ctx, argv[2], &desc, &second);
    if (status == SMG_OK) status = run(first, second);
    if (status != SMG_OK) fprintf(stderr, "%s\n", smg_context_error(ctx));
    smg_model_close(first);
    smg_model_close(second);
    smg_device_close(device);
    smg_context_destroy(ctx);
    return status == SMG_OK ? 0 : 1;
}
