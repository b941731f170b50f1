/* Built-in devices, families of devices and driver quirks, from targets.def, families.def and quirks.def. A row's text
 * is a target file; a device's facts are used whole (smg_target_named: planning for a device that is not here) or only
 * where a real device of that name does not answer (smg_target_apply_tables). */
#include "target/target_private.h"

typedef struct target_row {
    const char *name;
    const char *match; /* part of the device's own name, any case; "" matches nothing */
    const char *text;
} target_row;

static const target_row target_rows[] = {
#define SMG_TARGET_ROW(name, match, text) {name, match, text},
#include "target/targets.def"
#undef SMG_TARGET_ROW
};

/* The name is for messages. */
static const target_row family_rows[] = {
#define SMG_FAMILY_ROW(match, text) {match " family", match, text},
#include "target/families.def"
#undef SMG_FAMILY_ROW
};

typedef struct quirk_row {
    const char *device; /* part of the name, any case; "" is every device */
    const char *driver; /* part of the driver text, any case; "" is every driver */
    const char *key;
    int64_t value;
    const char *why;
} quirk_row;

static const quirk_row quirk_rows[] = {
#define SMG_QUIRK_ROW(device, driver, key, value, why) {device, driver, key, value, why},
#include "target/quirks.def"
#undef SMG_QUIRK_ROW
    {NULL, NULL, NULL, 0, NULL},
};

smg_status smg_target_named(smg_context *ctx, const char *name, smg_target *out_target) {
    smg_text names;
    smg_text_init(&names, ctx);
    for (size_t i = 0; i < SMG_COUNT_OF(target_rows); i++) {
        if (strcmp(target_rows[i].name, name) == 0) {
            smg_text_free(&names);
            return smg_target_parse(ctx, target_rows[i].text, target_rows[i].name, out_target);
        }
        smg_text_addf(&names, "%s%s", i ? ", " : "", target_rows[i].name);
    }
    smg_status status =
        smg_fail(ctx, SMG_NOT_FOUND, "no built-in target '%s'; there are %s", name, smg_text_cstr(&names));
    smg_text_free(&names);
    return status;
}

const char *smg_target_match(const char *name) {
    for (size_t i = 0; i < SMG_COUNT_OF(target_rows); i++)
        if (strcmp(target_rows[i].name, name) == 0) return target_rows[i].match;
    return "";
}

static void take_assumed(smg_target *target, const smg_target *from) {
    for (int i = 0; i < SMG_TARGET_FACT_COUNT; i++) {
        const smg_fact_row *row = &smg_fact_rows[i];
        if (smg_fact_from(target, row) != SMG_FACT_ASSUMED) continue;
        if (smg_fact_from(from, row) == SMG_FACT_ASSUMED) continue;
        int64_t integer = row->is_real ? 0 : smg_fact_int(from, row);
        double real = row->is_real ? smg_fact_real(from, row) : 0;
        smg_fact_set(target, row, integer, real, SMG_FACT_TABLE);
    }
}

/* A table's choice of subgroup size counts only where this driver offers it. */
static void keep_subgroup_in_range(smg_target *target) {
    if (target->subgroup_size == 1) return;
    if (target->subgroup_size < target->subgroup_min) target->subgroup_size = target->subgroup_min;
    if (target->subgroup_size > target->subgroup_max) target->subgroup_size = target->subgroup_max;
}

static void apply_quirk(smg_context *ctx, smg_target *target, const quirk_row *quirk) {
    if (strcmp(quirk->key, "matrix") == 0) { /* value: how many shapes to believe */
        if (target->matrix_count > quirk->value) target->matrix_count = (int)quirk->value;
    } else {
        const smg_fact_row *row = smg_fact_find(quirk->key, strlen(quirk->key));
        if (!row || row->is_real) return;
        smg_fact_set(target, row, quirk->value, 0, SMG_FACT_TABLE);
    }
    smg_log(ctx, SMG_LOG_INFO, "target '%s': %s set to %lld: %s", target->name, quirk->key, (long long)quirk->value,
            quirk->why);
}

/* The first whose match is part of the name; NULL: none. */
static const target_row *matching(const target_row *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].match[0] && smg_text_contains(name, rows[i].match)) return &rows[i];
    return NULL;
}

smg_status smg_target_apply_tables(smg_context *ctx, smg_target *target) {
    const target_row *row = matching(target_rows, SMG_COUNT_OF(target_rows), target->name);
    if (!row) row = matching(family_rows, SMG_COUNT_OF(family_rows), target->name);
    if (row) {
        smg_target known;
        SMG_TRY(smg_target_parse(ctx, row->text, row->name, &known));
        take_assumed(target, &known);
        smg_matrices_take(target, &known);
        keep_subgroup_in_range(target);
    }
    for (const quirk_row *quirk = quirk_rows; quirk->key; quirk++)
        if (smg_text_contains(target->name, quirk->device) && smg_text_contains(target->driver, quirk->driver))
            apply_quirk(ctx, target, quirk);
    return SMG_OK;
}
