/* cli_trace.c: profiled runs as a file of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
 *
 * Two tracks: the host's calls by its clock, and the device's kernels by its time stamps. Nothing tells how the two
 * clocks lie to each other; a run of the device is drawn so that it ends where the host saw it end. */
#include "cli/cli.h"

enum { HOST = 1, DEVICE = 2 }; /* tracks */

static void add_name(cli_trace *t, int track, const char *name) {
    smg_text_addf(&t->events, "    {\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", ", track);
    smg_text_add(&t->events, "\"args\": {\"name\": ");
    smg_text_add_json(&t->events, name);
    smg_text_add(&t->events, "}},\n");
}

void cli_trace_begin(cli_trace *t, smg_context *ctx, const smg_compilation *c) {
    *t = (cli_trace){.origin = smg_clock_seconds()};
    smg_text_init(&t->events, ctx);
    smg_text_add(&t->events, "{\n  \"displayTimeUnit\": \"ns\",\n  \"otherData\": {\"graph\": ");
    smg_text_add_json(&t->events, c->source->name);
    smg_text_add(&t->events, ", \"driver\": ");
    smg_text_add_json(&t->events, c->target.driver);
    smg_text_addf(&t->events, ", \"version\": \"%s\"},\n  \"traceEvents\": [\n", smg_version());
    add_name(t, HOST, "host");
    add_name(t, DEVICE, c->target.name);
    smg_text_add(&t->events,
                 "    {\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"smg\"}}");
}

void cli_trace_end(cli_trace *t) {
    smg_text_free(&t->events);
}

/* An event from `start` on; its arguments and two braces follow. */
static void begin_event(cli_trace *t, int track, const char *name, double start, double seconds) {
    smg_text_addf(&t->events,
                  ",\n    {\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"name\": ", track,
                  (start - t->origin) * 1e6, seconds * 1e6);
    smg_text_add_json(&t->events, name);
    smg_text_add(&t->events, ", \"args\": {");
}

static double number_of(const smg_bundle *bundle, smg_size size) {
    int64_t number = 0;
    return smg_size_is_const(bundle->sizes, size, &number) ? (double)number : 0;
}

void cli_trace_run(cli_trace *t, const smg_compilation *c, const double *steps, int variant, double start, double end) {
    const smg_bvariant *list = &c->bundle->variants.items[variant];
    double device = 0;
    for (int i = 0; i < list->run.count; i++) device += steps[i];
    begin_event(t, HOST, "run", start, end - start);
    smg_text_addf(&t->events, "\"run\": %d, \"kernels\": %d}}", t->runs, list->run.count);
    for (int i = 0; i < list->run.count; i++) {
        const smg_bstep *step = &list->run.items[i];
        begin_event(t, DEVICE, step->name, end - device, steps[i]);
        smg_text_addf(&t->events, "\"run\": %d, \"module\": ", t->runs);
        smg_text_add_json(&t->events, c->bundle->modules.items[step->module].name);
        smg_text_addf(&t->events, ", \"estimate_us\": %.6g, \"bytes\": %.0f, \"flops\": %.0f}}", step->estimate * 1e6,
                      number_of(c->bundle, step->bytes), number_of(c->bundle, step->flops));
        device -= steps[i];
    }
    t->runs++;
}

smg_status cli_trace_write(cli_trace *t, smg_context *ctx, const char *path) {
    smg_text_add(&t->events, "\n  ]\n}\n");
    SMG_TRY(smg_text_status(&t->events));
    return smg_file_write_atomic(ctx, path, smg_text_cstr(&t->events), t->events.length);
}
