/* cli_bundle.c: smg info and smg run of a bundle. */
#include <stdio.h>

#include "cli/cli.h"

bool cli_is_bundle(const cli_options *o) {
    return o->word_count == 1 && smg_bfile_is_at(o->ctx, o->words[0]);
}

/* ---- info -------------------------------------------------------------------------------------------- */

static void add_ports(const char *kind, const smg_interface *n, const smg_port *ports, int count, smg_text *text) {
    for (int i = 0; i < count; i++) {
        smg_text_addf(text, "%-8s %s %s[", kind, ports[i].name, smg_storage_word(ports[i].type));
        for (int d = 0; d < ports[i].rank; d++) {
            if (d > 0) smg_text_add(text, ", ");
            smg_size_print(n->sizes, ports[i].dims[d], text);
        }
        if (ports[i].absent == SMG_ABSENT_STATE)
            smg_text_addf(text, "], a state: %s of the run before\n", n->outputs[ports[i].next].name);
        else
            smg_text_addf(text, "]%s\n", ports[i].absent != SMG_ABSENT_REFUSED ? ", may be left out" : "");
    }
}

typedef struct class_facts {
    int64_t weights; /* bytes */
    int prepare;     /* kernels */
} class_facts;

static void add_class(const smg_bfile_class *c, const class_facts *facts, smg_text *text) {
    smg_text needs;
    smg_text_init(&needs, text->ctx);
    smg_target_print_given(&c->needs, &needs);
    smg_text_addf(text, "class    %s, %lld bytes, for devices%s%s of type %s\n", c->name, (long long)c->bytes,
                  c->match[0] != '\0' ? " named " : "", c->match, smg_device_type_word(c->needs.type));
    smg_text_addf(text, "         %lld bytes of the weights, ", (long long)facts->weights);
    if (facts->prepare > 0)
        smg_text_addf(text, "which %d kernels prepare when it is opened; needs:\n", facts->prepare);
    else
        smg_text_add(text, "ready as they are; needs:\n");
    for (const char *at = strchr(smg_text_cstr(&needs), '\n'); at != NULL && at[1] != '\0';) { /* behind the type */
        const char *line = at + 1, *comment = strstr(line, "  #");
        at = strchr(line, '\n');
        const char *end = comment != NULL && (at == NULL || comment < at) ? comment : at != NULL ? at : line;
        smg_text_addf(text, "           %.*s\n", (int)(end - line), line);
    }
    if (smg_text_status(&needs) != SMG_OK) text->failed = true;
    smg_text_free(&needs);
}

static void add_table(const smg_bfile *f, const class_facts *facts, smg_text *text) {
    smg_text_addf(text, "bundle   %s, precision %s, %d classes, weights %lld bytes of %lld\n", f->model, f->precision,
                  f->class_count, (long long)f->weights_bytes, (long long)f->source.bytes);
    add_ports("input", f->interface, f->interface->inputs, f->interface->input_count, text);
    add_ports("output", f->interface, f->interface->outputs, f->interface->output_count, text);
    for (int i = 0; i < smg_size_symbol_count(f->interface->sizes); i++) {
        int64_t max = smg_size_symbol_max(f->interface->sizes, i);
        smg_text_addf(text, "%-8s %s: 1 to ", "size", smg_size_symbol_name(f->interface->sizes, i));
        if (max >= SMG_SIZE_UNBOUNDED)
            smg_text_add(text, "any");
        else
            smg_text_addf(text, "%lld", (long long)max);
        smg_text_addf(text, ", compiled for %lld\n", (long long)f->interface->nominal[i]);
    }
    for (int i = 0; i < f->class_count; i++) add_class(&f->classes[i], &facts[i], text);
}

/* All of it is read once, so that what is said is of a whole file. */
static smg_status look(const cli_options *o, smg_arena *arena, const smg_bfile *f, smg_text *text) {
    const char *head = NULL;
    class_facts *facts = SMG_ARENA_ARRAY(arena, class_facts, (size_t)f->class_count + 1);
    if (facts == NULL) return SMG_MEMORY;
    SMG_TRY(smg_bfile_check_weights(f));
    for (int i = 0; i < f->class_count; i++) {
        smg_bundle *bundle = NULL;
        SMG_TRY(smg_bfile_read_class(f, i, arena, &bundle));
        facts[i].prepare = bundle->prepare.count;
        SMG_TRY(smg_bfile_weights(f, bundle, &facts[i].weights));
    }
    SMG_TRY(smg_bfile_read_head(f, arena, &head));
    if (o->json)
        smg_text_add(text, head);
    else
        add_table(f, facts, text);
    return SMG_OK;
}

/* ---- run --------------------------------------------------------------------------------------------- */

#if SMG_VULKAN

static smg_status check_options(const cli_options *o) {
    const struct {
        bool given;
        const char *name;
    } others[] = {
        {o->check, "check"},
        {o->interpret, "interpret"},
        {o->profile, "profile"},
        {o->unfused, "unfused"},
        {o->objective != NULL, "objective"},
        {o->precision != NULL, "precision"},
        {o->rank != 0, "rank"},
        {o->target != NULL, "target"},
        {o->max_dim_count > 0, "max-dim"},
        {o->max_memory > 0, "max-memory"},
        {o->max_fused_ops > 0, "max-fused-ops"},
        {o->min_gain > 0, "min-gain"},
    };
    for (size_t i = 0; i < SMG_COUNT_OF(others); i++) {
        if (!others[i].given) continue;
        return smg_fail(o->ctx, SMG_INVALID, "--%s does nothing for a bundle, which was compiled before",
                        others[i].name);
    }
    return SMG_OK;
}

static void add_run(const smg_bfile *f, smg_model *model, const cli_arrays *arrays, const cli_result *result,
                    smg_text *text) {
    smg_text_addf(text, "bundle   %s, precision %s, class %s of %d\nsizes    ", f->model, f->precision,
                  smg_model_class(model), f->class_count);
    cli_print_dims(text, arrays);
    smg_text_addf(text, "\nopen     device %.3f s, pipelines and upload %.3f s, first result after %.3f s\n",
                  result->device, result->program, result->ready);
    for (int i = 0; i < arrays->output_count; i++) cli_print_output(&arrays->outputs[i], text);
    smg_text_add(text, "time     on the device: ");
    cli_print_spread(&result->spread, text);
    smg_text_add(text, "\n");
}

static void add_run_json(const smg_bfile *f, smg_model *model, const cli_arrays *arrays, const cli_result *result,
                         smg_text *text) {
    smg_text_add(text, "{\n  \"bundle\": ");
    smg_text_add_json(text, f->model);
    smg_text_add(text, ",\n  \"class\": ");
    smg_text_add_json(text, smg_model_class(model));
    smg_text_addf(text, ",\n  \"device_seconds\": %.6g,\n  \"program_seconds\": %.6g,\n", result->device,
                  result->program);
    smg_text_addf(text, "  \"first_seconds\": %.9g,\n  \"ready_seconds\": %.6g,\n  \"time\": {", result->first,
                  result->ready);
    cli_print_spread_json(&result->spread, text);
    smg_text_add(text, "},\n  ");
    cli_print_dims_json(text, arrays);
    smg_text_add(text, "\n}\n");
}

static smg_status run_model(const cli_options *o, const smg_bfile *f, double start, cli_arrays *arrays,
                            smg_model *model, smg_text *text) {
    cli_result result = {0};
    SMG_TRY(smg_model_bind(model, arrays->symbols));
    SMG_TRY(cli_fill_arrays(o, f->interface, arrays));
    SMG_TRY(cli_measure(o, arrays, model, start, &result));
    SMG_TRY(cli_save_outputs(o, arrays));
    (o->json ? add_run_json : add_run)(f, model, arrays, &result, text);
    return SMG_OK;
}

static smg_status run(const cli_options *o, double start, smg_arena *arena, const smg_bfile *f,
                      smg_mapped_file *mapping, smg_text *text) {
    cli_arrays arrays;
    smg_model *model = NULL;
    SMG_TRY(check_options(o));
    SMG_TRY(cli_make_arrays(o, f->interface, arena, &arrays));
    const smg_bundle_desc desc = {.device = o->device,
                                  .dims = arrays.dims,
                                  .dim_count = arrays.dim_count,
                                  .ranges = arrays.ranges,
                                  .range_count = arrays.range_count};
    SMG_TRY(smg_model_open_bytes(o->ctx, &f->source, f->label, &desc, mapping, &model));
    smg_status status = run_model(o, f, start, &arrays, model, text);
    smg_model_close(model);
    return status;
}

#else

static smg_status run(const cli_options *o, double start, smg_arena *arena, const smg_bfile *f,
                      smg_mapped_file *mapping, smg_text *text) {
    (void)start, (void)arena, (void)f, (void)mapping, (void)text;
    return smg_fail(o->ctx, SMG_UNSUPPORTED, "this smg was built without Vulkan");
}

#endif

/* ---- both -------------------------------------------------------------------------------------------- */

static int on_bundle(cli_options *o, bool runs) {
    double start = smg_clock_seconds();
    smg_arena *arena = NULL;
    smg_mapped_file mapping = {0};
    smg_bfile *file = NULL;
    smg_text text;
    if (smg_arena_create(o->ctx, &arena) != SMG_OK) return cli_fail(o->ctx);
    smg_text_init(&text, o->ctx);
    smg_status status = smg_file_map(o->ctx, o->words[0], &mapping);
    const smg_bfile_source source = {.bytes = (int64_t)mapping.size, .data = mapping.data};
    if (status == SMG_OK) status = smg_bfile_read(arena, &source, o->words[0], &file);
    if (status == SMG_OK) status = runs ? run(o, start, arena, file, &mapping, &text) : look(o, arena, file, &text);
    if (status == SMG_OK) status = smg_text_status(&text);
    if (status == SMG_OK) fputs(smg_text_cstr(&text), stdout);
    smg_text_free(&text);
    smg_file_unmap(&mapping);
    smg_arena_destroy(arena);
    return status == SMG_OK ? CLI_OK : cli_fail(o->ctx);
}

int cli_bundle_info(cli_options *o) {
    return on_bundle(o, false);
}

int cli_bundle_run(cli_options *o) {
    return on_bundle(o, true);
}
