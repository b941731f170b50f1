/* cli_devices.c: smg devices. */
#include <stdio.h>

#include "cli/cli.h"

#if SMG_VULKAN

static void print_table(const smg_vk_device_info *list, int count) {
    for (int i = 0; i < count; i++) {
        const smg_vk_device_info *d = &list[i];
        printf("%d  %-10s  %s  (%s, Vulkan %d.%d.%d, %.1f GiB)\n", d->index, smg_device_type_word(d->type), d->name,
               d->driver, d->api_major, d->api_minor, d->api_patch, (double)d->local_bytes / 1073741824.0);
    }
}

static void print_verdicts(const smg_vk_device *device) {
    const smg_vk_verdict *verdicts = NULL;
    int count = smg_vk_verdicts(device, &verdicts);
    for (int i = 0; i < count; i++) {
        const smg_vk_verdict *v = &verdicts[i];
        printf("# %s: %s%s\n", v->what, v->why[0] ? "failed: " : "passed", v->why);
    }
}

/* As a target: what `smg explain --target` takes, with what the list says in a comment above. */
static smg_status print_facts(const cli_options *o, const smg_vk_device_info *d) {
    smg_vk_device *device = NULL;
    smg_text text;
    char index[16];
    snprintf(index, sizeof(index), "%d", d->index);
    SMG_TRY(smg_vk_open(o->ctx, index, 0, &device));
    smg_text_init(&text, o->ctx);
    smg_status status = o->no_calibrate ? SMG_OK : smg_vk_prove(device, true);
    if (status == SMG_OK && !o->no_calibrate) status = smg_vk_calibrate(device);
    if (status == SMG_OK) {
        print_verdicts(device);
        smg_target_print(smg_vk_target(device), &text);
        status = smg_text_status(&text);
    }
    if (status == SMG_OK) fputs(smg_text_cstr(&text), stdout);
    smg_text_free(&text);
    smg_vk_close(device);
    return status;
}

static smg_status print_all_facts(const cli_options *o, const smg_vk_device_info *list, int count) {
    for (int i = 0; i < count; i++) {
        printf(i > 0 ? "\n# " : "# ");
        print_table(&list[i], 1);
        SMG_TRY(print_facts(o, &list[i]));
    }
    return SMG_OK;
}

static smg_status print_json(smg_context *ctx, const smg_vk_device_info *list, int count) {
    smg_text text;
    smg_text_init(&text, ctx);
    smg_text_add(&text, "[");
    for (int i = 0; i < count; i++) {
        const smg_vk_device_info *d = &list[i];
        smg_text_addf(&text, "%s\n  {\"index\": %d, \"name\": ", i > 0 ? "," : "", d->index);
        smg_text_add_json(&text, d->name);
        smg_text_add(&text, ", \"driver\": ");
        smg_text_add_json(&text, d->driver);
        smg_text_addf(&text, ", \"type\": \"%s\", \"api\": \"%d.%d.%d\", \"local_bytes\": %lld}",
                      smg_device_type_word(d->type), d->api_major, d->api_minor, d->api_patch,
                      (long long)d->local_bytes);
    }
    smg_text_add(&text, "\n]\n");
    smg_status status = smg_text_status(&text);
    if (status == SMG_OK) fputs(smg_text_cstr(&text), stdout);
    smg_text_free(&text);
    return status;
}

static smg_status print_devices(const cli_options *o) {
    smg_arena *arena = NULL;
    smg_vk_device_info *list = NULL;
    int count = 0;
    SMG_TRY(smg_arena_create(o->ctx, &arena));
    smg_status status = smg_vk_devices(o->ctx, arena, &list, &count);
    if (status == SMG_OK && o->json) {
        status = print_json(o->ctx, list, count);
    } else if (status == SMG_OK && o->verbose) {
        status = print_all_facts(o, list, count);
    } else if (status == SMG_OK) {
        print_table(list, count);
    }
    smg_arena_destroy(arena);
    return status;
}

#else

static smg_status print_devices(const cli_options *o) {
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif

int cli_devices(cli_options *o) {
    smg_status status = SMG_OK;
    if (o->word_count > 0)
        status = smg_fail(o->ctx, SMG_INVALID, "smg devices takes no word, '%s' was given", o->words[0]);
    if (status == SMG_OK) status = print_devices(o);
    return status == SMG_OK ? CLI_OK : cli_fail(o->ctx);
}
