/* main.c: the commands, and which one it is. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* What a plan may be. */
#define LIMITS "max-memory max-fused-ops max-fused-products min-gain "
#define LIMITS_USAGE "        [--max-memory BYTES] [--max-fused-ops N] [--max-fused-products N] [--min-gain PERCENT]\n"

static const cli_command commands[] = {
    {"devices", cli_devices, "json verbose no-calibrate", "smg devices [--json] [--verbose [--no-calibrate]]",
     "Lists the Vulkan devices of this machine. --verbose adds every fact that plans are made from, each\n"
     "with its origin, as smg explain MODEL --phase target does, and what of the device was tried; rates are\n"
     "measured once (two seconds)."},
    {"info", cli_info, "json", "smg info MODEL [--json]",
     "Inputs, outputs, sizes, types and parameters of a model; of a bundle its classes and what each needs of\n"
     "a device, after a look at all its weights. Needs no device."},
    {"run", cli_run,
     "device dim max-dim input output check profile trace repeat json seed objective " LIMITS
     "precision unfused interpret rank "
     "target no-calibrate nominal no-matrices measure padding-unread tuning",
     "smg run MODEL [--device D] [--dim sequence=128|1..512] [--max-dim sequence=512]\n"
     "        [--input name=file.npy|random|zeros|lengths:37,128] [--output name=file.npy] [--check]\n"
     "        [--profile [--trace FILE.json]]\n"
     "        [--repeat N] [--seed N] [--objective time|dispatches|memory] [--unfused]\n" LIMITS_USAGE
     "        [--no-calibrate | --nominal] [--precision f32|f16|bf16 [--measure]] [--interpret [--target NAME|FILE]] "
     "[--rank N]\n"
     "        [--no-matrices] [--padding-unread] [--tuning FILE|none] [--json]",
     "Compiles a model and runs it. Inputs that are not given are random; beside files, a directory's\n"
     "attention_mask is 1 and its token_type_ids are 0. lengths:37,128 is a mask of rows that long, or the\n"
     "lengths themselves where an input has one number a row. --check compares every output\n"
     "with the graph's reference in double, exits with 1 on FAIL, and names the first value that is too large\n"
     "for 16 bits. A range of sizes (1..512) is\n"
     "recorded once and runs at its end. --interpret runs the kernels on the\n"
     "CPU, planned for a target (careful) or the device that --device names. --rank N takes every\n"
     "kernel's N-th next schedule by price (for tuning). --precision f16 or bf16 keeps weights and values\n"
     "in 16 bits wherever nothing known of them speaks against it; arithmetic is f32, but for partial sums.\n"
     "--measure computes the reference for the inputs first, and what comes near the end of the type stays f32.\n"
     "--no-matrices plans as if the device had no products of matrices (for measuring). --padding-unread\n"
     "leaves rows out that a mask leaves out at its ends, which nobody reads: their values may be any.\n"
     "What smg tune kept of the device decides between schedules; --tuning names a file of it, or none. Rates that it\n"
     "fitted decide the rest of the plan; --nominal takes those that were measured alone.\n"
     "--profile times every kernel, --trace writes those runs for Perfetto (ui.perfetto.dev).\n"
     "--objective memory takes the plan that needs the least memory for values between kernels, --max-memory the\n"
     "fastest that keeps to so many bytes. --max-fused-ops, --max-fused-products and --min-gain bound what a kernel "
     "of\n"
     "several operations is: how many it has (40, and 6 products, where nothing is said; 100 and 24 at most), and "
     "what\n"
     "it saves of the time that they take alone."},
    {"compile", cli_compile,
     "o target device dim max-dim objective " LIMITS "precision no-calibrate nominal padding-unread tuning prepared",
     "smg compile MODEL -o FILE [--target NAME|FILE,NAME|FILE,.. | --device D]\n"
     "        [--precision f32|f16|bf16] [--dim sequence=128] [--max-dim sequence=512]\n" LIMITS_USAGE
     "        [--objective time|dispatches|memory] [--padding-unread] [--tuning FILE|none]\n"
     "        [--no-calibrate | --nominal] [--prepared]",
     "Compiles a model ahead, for one target or several, into a bundle: one file with weights once and, for\n"
     "each target, all kernels. smg run FILE and smg info FILE take it, and so does libsmg-rt (smg/rt.h), a\n"
     "library without a compiler, which runs on a device what was compiled for the target that suits it best.\n"
     "--prepared stores the weights of the first target as its kernels want them, so that nothing is left to do\n"
     "when the bundle is opened. A device that can do that is needed: --device, or else $SMG_DEVICE or the best.\n"
     "Without --target it is compiled for that device, whose driver is asked what becomes of the kernels: what it\n"
     "spills, or does not build, is planned otherwise, as when a model is opened there."},
    {"explain", cli_explain,
     "target device phase after kernel prices json dim max-dim objective " LIMITS "precision unfused rank no-calibrate "
     "nominal no-matrices measure padding-unread input seed tuning report dot",
     "smg explain MODEL [--target NAME|FILE | --device D] [--phase P] [--after PASS] [--kernel K] [--prices]\n"
     "        [--objective time|dispatches|memory] [--unfused] [--dim s=128] [--max-dim s=512]\n" LIMITS_USAGE
     "        [--precision f32|f16|bf16 [--measure [--input name=file.npy] [--seed N]]]\n"
     "        [--no-calibrate | --nominal]\n"
     "        [--no-matrices] [--padding-unread] [--rank N] [--tuning FILE|none] [--json]\n"
     "        [--report | --dot]",
     "Shows every phase: graph, rewrite, precision, target, space, search, plan, lower, kernel, glsl. Needs no\n"
     "device with --target. --kernel (k3, or its number) shows one step of a phase that has steps. --phase search\n"
     "lists the schedules of each kernel: what was generated and lowered, what fell away and why. --phase lower\n"
     "has the program after each pass of lowering, --after PASS after one of them. --json has the\n"
     "plan with its prices. --report has what each kernel saves beside its operations apart, and what\n"
     "kernels that follow each other would be as one; what smg tune measured stands beside it. --dot has the\n"
     "Space-Mapping Graphs of the kernels for Graphviz."},
    {"bench", cli_bench,
     "device dim max-dim input output repeat json seed objective " LIMITS
     "precision rank ranks no-calibrate nominal no-matrices check "
     "measure padding-unread tuning",
     "smg bench MODEL [--device D] [--dim batch=1|1..8] [--max-dim batch=8]\n"
     "        [--input name=file.npy|random|zeros|lengths:37,128] [--output name=file.npy] [--check] [--repeat N]\n"
     "        [--seed N] [--objective time|dispatches|memory] [--precision f32|f16|bf16 [--measure]] "
     "[--no-calibrate | --nominal]\n" LIMITS_USAGE
     "        [--no-matrices] [--padding-unread] [--rank N | --ranks N | --tuning FILE|none] [--json]",
     "Times the fused plan against the unfused one (every operation its own kernel), in turns in\n"
     "one run on one device, for some seconds or N rounds. --check compares both with the reference\n"
     "and exits with 1 on FAIL; --output writes a result of the fused one. A range of sizes is recorded once,\n"
     "timed at its end, and the host's time from one size of it to the next is told. --ranks N times the\n"
     "fused plan alone, with the first N schedules by price, for a tenth of a second each."},
    {"tune", cli_tune,
     "device dim max-dim input o json seed objective " LIMITS
     "precision ranks no-calibrate no-matrices measure padding-unread time rates",
     "smg tune MODEL [--time 30s] [--device D] [--dim sequence=128] [--max-dim sequence=512] [-o FILE] [--ranks N]\n"
     "        [--input name=file.npy|random|zeros|lengths:37,128] [--seed N] [--objective "
     "time|dispatches|memory]\n" LIMITS_USAGE
     "        [--precision f32|f16|bf16 [--measure]] [--no-calibrate | --rates] [--no-matrices] [--padding-unread] "
     "[--json]",
     "Measures other cuts into kernels, sums in other numbers of parts, and the best N schedules by price (16) of\n"
     "every kernel where it runs, and keeps what is fastest in the cache folder, or FILE: later runs of this model on\n"
     "this device, and others with kernels of the same structure and sizes, take it. What gives other results than\n"
     "each operation as its own kernel does not count, nor does anything where the whole is slower than by prices.\n"
     "--time bounds what all of it takes, about; behind that, or Ctrl-C, the next smg tune goes on with what is left\n"
     "to measure. --rates fits the device's rates to what was measured, so that prices come nearer to it, for every\n"
     "later plan of the device; what it tells is how far prices are off before and after, also of kernels that rates\n"
     "were not fitted to."},
    {"embed", cli_embed, "device json max-dim objective precision no-calibrate nominal tuning",
     "smg embed MODEL_DIR [--device D] [--max-dim sequence=512] [--objective time|dispatches|memory]\n"
     "        [--precision f32|f16|bf16] [--tuning FILE|none] [--no-calibrate | --nominal] [--json] TEXT...\n"
     "smg embed MODEL_DIR < lines",
     "Embeddings of texts by a sentence encoder's directory, one line each. A text with more tokens than\n"
     "the directory's maximum, or that of --max-dim sequence, is cut."},
};

static void print_usage(FILE *out) {
    fprintf(out, "smg %s: Transformers as fused kernels on any Vulkan device\n\n", smg_version());
    for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) fprintf(out, "%s\n", commands[i].usage);
    fprintf(out, "smg help [COMMAND | ops]\nsmg --version\n\n"
                 "MODEL is a Hugging Face directory, an ONNX file or a graph text file (.smg); for run and info\n"
                 "also a bundle, which smg compile wrote.\n"
                 "D is an index, a type (cpu, discrete, integrated) or a part of a device's name.\n\n");
    fprintf(out, "Environment:\n"
                 "  SMG_DEVICE      the device where no --device is given, as D\n"
                 "  SMG_VALIDATION  1: with Vulkan's validation layer; a run after a message of it fails\n"
                 "  SMG_CACHE_DIR   the folder of the caches (compiled kernels, pipelines, rates and proofs of\n"
                 "                  devices, what smg tune measured); empty: no caches; not set: $XDG_CACHE_HOME/smg, "
                 "else $HOME/.cache/smg\n"
                 "                  (Windows: %%LOCALAPPDATA%%\\smg)\n"
                 "  SMG_STATS       1: pipelines keep what the driver tells of their code\n"
                 "  VK_DRIVER_FILES the drivers that Vulkan's loader looks at\n");
}

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < CLI_COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static void print_ops(void) {
    const char *word, *doc;
    for (int i = 0; smg_graph_operation(i, &word, &doc); i++) printf("%-12s %s\n", word, doc);
}

static int help(const char *topic) {
    if (topic == NULL) {
        print_usage(stdout);
        return CLI_OK;
    }
    if (strcmp(topic, "ops") == 0) {
        print_ops();
        return CLI_OK;
    }
    const cli_command *command = find_command(topic);
    if (command == NULL) {
        fprintf(stderr, "smg: there is no command '%s'; smg help lists them\n", topic);
        return CLI_ERROR;
    }
    printf("%s\n\n%s\n", command->usage, command->doc);
    return CLI_OK;
}

static int finish(int result) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return result;
    fprintf(stderr, "smg: cannot write the results\n");
    return CLI_ERROR;
}

static int run_command(const cli_command *command, int argc, char **argv) {
    static const smg_context_desc quiet = {.log = cli_on_log};
    static const smg_context_desc loud = {.log = cli_on_log, .progress = cli_on_progress};
    smg_context *ctx = NULL;
    if (smg_context_create(smg_command_errors_on_terminal() ? &loud : &quiet, &ctx) != SMG_OK) {
        fprintf(stderr, "smg: out of memory\n");
        return CLI_ERROR;
    }
    cli_text problem = {0};
    cli_options options = {.ctx = ctx, .problem = &problem};
    int result = cli_parse(command, argc, argv, &options) == SMG_OK ? command->run(&options) : cli_fail(&options);
    cli_text_free(&problem);
    smg_context_destroy(ctx);
    return finish(result);
}

static int no_more_words(int argc, char **argv, int taken) {
    if (argc <= taken) return CLI_OK;
    fprintf(stderr, "smg: '%s' is one word too many\n", argv[taken]);
    return CLI_ERROR;
}

int main(int argc, char **argv) {
    if (!smg_command_hold_streams()) return CLI_ERROR;
    argv = smg_command_words(&argc, argv);
    if (argv == NULL) {
        fprintf(stderr, "smg: out of memory\n");
        return CLI_ERROR;
    }
    if (argc < 2) {
        print_usage(stderr);
        return CLI_ERROR;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        if (no_more_words(argc, argv, 2) != CLI_OK) return CLI_ERROR;
        printf("smg %s\n", smg_version());
        return finish(CLI_OK);
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        if (no_more_words(argc, argv, 3) != CLI_OK) return CLI_ERROR;
        return finish(help(argc > 2 ? argv[2] : NULL));
    }
    const cli_command *command = find_command(word);
    if (command == NULL) {
        fprintf(stderr, "smg: there is no command '%s'; smg help lists them\n", word);
        return CLI_ERROR;
    }
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return finish(help(word));
        if (strcmp(argv[i], "--") == 0) break;
    }
    return run_command(command, argc - 2, argv + 2);
}
