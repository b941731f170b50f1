/* cli_devices.c: smg devices. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static void print_row(int index, const smg_device_info *d) {
    printf("%d  %-10s  %s  (%s, Vulkan %d.%d.%d, %.1f GiB)\n", index, d->type, d->name, d->driver, d->api_major,
           d->api_minor, d->api_patch, (double)d->memory_bytes / 1073741824.0);
}

static void print_verdicts(const smg_device *device) {
    smg_device_verdict v;
    for (int i = 0; smg_device_get_verdict(device, i, &v); i++)
        printf("# %s: %s%s\n", v.what, v.why[0] ? "failed: " : "passed", v.why);
}

static void print_revision(const smg_device *device) {
    smg_device_facts facts;
    if (smg_device_get_facts(device, &facts) == SMG_OK && facts.revision > 0)
        printf("# rates are fitted to measured kernels, revision %d\n", facts.revision);
}

/* As a target: what `smg explain --target` takes, with what the list says in a comment above. */
static smg_status print_facts(const cli_options *o, int number) {
    smg_device *device = NULL;
    cli_text text = {0};
    char index[16];
    snprintf(index, sizeof(index), "%d", number);
    CLI_TRY(smg_device_open(o->ctx, index, &device));
    smg_status status = o->no_calibrate ? SMG_OK : smg_device_calibrate(device, true);
    if (status == SMG_OK) {
        print_verdicts(device);
        print_revision(device);
        status = smg_device_write_target(device, cli_text_sink(&text));
    }
    status = cli_text_print(&text, status);
    smg_device_close(device);
    return status;
}

static smg_status print_all_facts(const cli_options *o, const smg_device_info *list, int count) {
    for (int i = 0; i < count; i++) {
        printf(i > 0 ? "\n# " : "# ");
        print_row(i, &list[i]);
        CLI_TRY(print_facts(o, i));
    }
    return SMG_OK;
}

static smg_status print_json(const smg_device_info *list, int count) {
    cli_text text = {0};
    cli_text_add(&text, "[");
    for (int i = 0; i < count; i++) {
        const smg_device_info *d = &list[i];
        cli_text_addf(&text, "%s\n  {\"index\": %d, \"name\": ", i > 0 ? "," : "", i);
        cli_text_add_json(&text, d->name);
        cli_text_add(&text, ", \"driver\": ");
        cli_text_add_json(&text, d->driver);
        cli_text_addf(&text, ", \"type\": \"%s\", \"api\": \"%d.%d.%d\", \"local_bytes\": %lld}", d->type, d->api_major,
                      d->api_minor, d->api_patch, (long long)d->memory_bytes);
    }
    cli_text_add(&text, "\n]\n");
    return cli_text_print(&text, SMG_OK);
}

static smg_status print_list(const cli_options *o, const smg_device_info *list, int count) {
    if (o->json) return print_json(list, count);
    if (o->verbose) return print_all_facts(o, list, count);
    for (int i = 0; i < count; i++) print_row(i, &list[i]);
    return SMG_OK;
}

static smg_status print_devices(const cli_options *o) {
    int there = 0, count = 0;
    CLI_TRY(smg_device_list(o->ctx, NULL, 0, &there));
    smg_device_info *list = calloc((size_t)there + 1, sizeof(*list));
    if (list == NULL) return SMG_MEMORY;
    smg_status status = smg_device_list(o->ctx, list, there, &count);
    if (status == SMG_OK) status = print_list(o, list, count < there ? count : there);
    free(list);
    return status;
}

int cli_devices(cli_options *o) {
    smg_status status = SMG_OK;
    if (o->word_count > 0) status = cli_error(o, SMG_INVALID, "smg devices takes no word, '%s' was given", o->words[0]);
    if (status == SMG_OK) status = print_devices(o);
    return status == SMG_OK ? CLI_OK : cli_fail(o);
}
