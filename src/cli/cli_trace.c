/* cli_trace.c: profiled runs as a file of trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.
 *
 * Two tracks: the host's calls by its clock, and the device's kernels by its time stamps. Nothing tells how the two
 * clocks lie to each other; a run of the device is drawn so that it ends where the host saw it end. */
#include "cli/cli.h"

enum { HOST = 1, DEVICE = 2 }; /* tracks */

static void add_name(cli_trace *t, int track, const char *name) {
    cli_text_addf(&t->events, "    {\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", ", track);
    cli_text_add(&t->events, "\"args\": {\"name\": ");
    cli_text_add_json(&t->events, name);
    cli_text_add(&t->events, "}},\n");
}

void cli_trace_begin(cli_trace *t, const smg_compilation_facts *facts) {
    *t = (cli_trace){.origin = smg_command_seconds()};
    cli_text_add(&t->events, "{\n  \"displayTimeUnit\": \"ns\",\n  \"otherData\": {\"graph\": ");
    cli_text_add_json(&t->events, facts->graph);
    cli_text_add(&t->events, ", \"driver\": ");
    cli_text_add_json(&t->events, facts->driver);
    cli_text_addf(&t->events, ", \"version\": \"%s\"},\n  \"traceEvents\": [\n", smg_version());
    add_name(t, HOST, "host");
    add_name(t, DEVICE, facts->target);
    cli_text_add(&t->events,
                 "    {\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"smg\"}}");
}

void cli_trace_end(cli_trace *t) {
    cli_text_free(&t->events);
}

/* An event from `start` on; its arguments and two braces follow. */
static void begin_event(cli_trace *t, int track, const char *name, double start, double seconds) {
    cli_text_addf(&t->events,
                  ",\n    {\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"name\": ", track,
                  (start - t->origin) * 1e6, seconds * 1e6);
    cli_text_add_json(&t->events, name);
    cli_text_add(&t->events, ", \"args\": {");
}

void cli_trace_run(cli_trace *t, const smg_model *model, double start, double end) {
    smg_step_info step;
    smg_kernel_info kernel;
    double device = 0;
    for (int i = 0; smg_model_step(model, i, &step); i++) device += step.seconds;
    begin_event(t, HOST, "run", start, end - start);
    cli_text_addf(&t->events, "\"run\": %d, \"kernels\": %d}}", t->runs, smg_model_step_count(model));
    for (int i = 0; smg_model_step(model, i, &step) && smg_model_kernel(model, step.kernel, &kernel); i++) {
        begin_event(t, DEVICE, step.name, end - device, step.seconds);
        cli_text_addf(&t->events, "\"run\": %d, \"module\": ", t->runs);
        cli_text_add_json(&t->events, kernel.name);
        cli_text_addf(&t->events, ", \"estimate_us\": %.6g, \"bytes\": %.0f, \"flops\": %.0f}}", step.estimate * 1e6,
                      step.bytes, step.flops);
        device -= step.seconds;
    }
    t->runs++;
}

smg_status cli_trace_write(cli_trace *t, smg_context *ctx, const char *path) {
    cli_text_add(&t->events, "\n  ]\n}\n");
    CLI_TRY(cli_text_status(&t->events));
    return smg_command_write_file(ctx, path, cli_text_cstr(&t->events), t->events.length);
}
