/* ggml_peer: rows of the GPU table by ggml's Vulkan backend.
 *
 *     ggml_peer [DIVISOR]        divides long sides, to try it on a small device
 *
 * Prints {"name", "peer", "us", "error"} for each row, a line of JSON each. ggml tells no GPU times: an operation stands in a
 * graph so often that a run takes tens of milliseconds, and the median of runs by the host's clock is shared out. Sums are f32. The error is
 * ||got - want|| / ||want|| over sampled rows against double. Built by scripts/gpu-bench.sh with Debian's libggml-dev; loads
 * libggml-vulkan.so beside it. */
#define _POSIX_C_SOURCE 200809L
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_COPIES = 400, ROUNDS = 7, SAMPLES = 16 };

typedef enum kind { PRODUCT, ATTENTION, SOFTMAX, RMSNORM } kind;
typedef struct job {
    const char *name, *peer;
    kind kind;
    int64_t rows, columns, inner; /* of a product; of attention: rows, heads * batch, width */
    int64_t batch;
    int causal;
    double seconds; /* about what it takes, for the number of copies */
} job;

static const job jobs[] = {
    {"GEMM 4096^3", "ggml f16", PRODUCT, 4096, 4096, 4096, 1, 0, 4e-4},
    {"matrix-vector 4096 -> 14336, 1 row", "ggml f16", PRODUCT, 1, 14336, 4096, 1, 0, 4e-5},
    {"matrix-vector 4096 -> 14336, 8 rows", "ggml f16", PRODUCT, 8, 14336, 4096, 1, 0, 6e-5},
    {"attention b32 h12 s512 d64", "ggml f16", ATTENTION, 512, 12, 64, 32, 0, 2e-4},
    {"attention b32 h12 s512 d64 causal", "ggml f16", ATTENTION, 512, 12, 64, 32, 1, 2e-4},
    {"attention b8 h16 s1024 d64", "ggml f16", ATTENTION, 1024, 16, 64, 8, 0, 2e-4},
    {"attention b8 h16 s1024 d64 causal", "ggml f16", ATTENTION, 1024, 16, 64, 8, 1, 2e-4},
    {"attention b1 h32 s4096 d128", "ggml f16", ATTENTION, 4096, 32, 128, 1, 0, 1e-3},
    {"attention b1 h32 s4096 d128 causal", "ggml f16", ATTENTION, 4096, 32, 128, 1, 1, 1e-3},
    {"softmax 16384x4096", "ggml f32", SOFTMAX, 16384, 4096, 1, 1, 0, 2e-4},
    {"RMSNorm 16384x4096", "ggml f32", RMSNORM, 16384, 4096, 1, 1, 0, 2e-4},
};

static ggml_backend_t backend;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double value_of(const struct ggml_tensor *t, const void *data, int64_t i) {
    return t->type == GGML_TYPE_F16 ? (double)ggml_fp16_to_fp32(((const ggml_fp16_t *)data)[i])
                                    : (double)((const float *)data)[i];
}

/* Multiples of 1/1024 in [-1, 1): exact in both types. Gives the host's copy. */
static void *fill(struct ggml_tensor *t, unsigned seed) {
    int64_t count = ggml_nelements(t);
    void *data = malloc(ggml_nbytes(t));
    unsigned state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float x = (float)(state >> 21) / 1024.0f - 1.0f;
        if (t->type == GGML_TYPE_F16)
            ((ggml_fp16_t *)data)[i] = ggml_fp32_to_fp16(x);
        else
            ((float *)data)[i] = x;
    }
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    return data;
}

static void fill_mask(struct ggml_tensor *t, int64_t rows) {
    ggml_fp16_t *data = malloc(ggml_nbytes(t));
    for (int64_t r = 0; r < t->ne[1]; r++)
        for (int64_t c = 0; c < rows; c++) data[r * rows + c] = ggml_fp32_to_fp16(c > r ? -INFINITY : 0.0f);
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(data);
}

typedef struct made {
    struct ggml_tensor *in[4], *out;
} made;

static struct ggml_tensor *operation(struct ggml_context *ctx, const job *j, made *m) {
    switch (j->kind) {
    case PRODUCT: return ggml_mul_mat(ctx, m->in[0], m->in[1]);
    case ATTENTION:
        return ggml_flash_attn_ext(ctx, m->in[0], m->in[1], m->in[2], m->in[3], 1.0f / sqrtf((float)j->inner), 0, 0);
    case SOFTMAX: return ggml_soft_max(ctx, m->in[0]);
    case RMSNORM: return ggml_rms_norm(ctx, m->in[0], 1e-6f);
    }
    return NULL;
}

static void make_inputs(struct ggml_context *ctx, const job *j, made *m) {
    if (j->kind == PRODUCT) {
        m->in[0] = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, j->inner, j->columns);
        m->in[1] = ggml_new_tensor_2d(ctx, j->rows > 8 ? GGML_TYPE_F16 : GGML_TYPE_F32, j->inner, j->rows);
    } else if (j->kind == ATTENTION) {
        m->in[0] = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, j->inner, j->rows, j->columns, j->batch);
        m->in[1] = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, j->inner, j->rows, j->columns, j->batch);
        m->in[2] = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, j->inner, j->rows, j->columns, j->batch);
        if (j->causal) m->in[3] = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, j->rows, (j->rows + 63) / 64 * 64);
    } else {
        m->in[0] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, j->columns, j->rows);
    }
}

/* ---- what must come out: one row of the result in double ---------------------------------------------- */

static int64_t width_of(const job *j) {
    return j->kind == ATTENTION ? j->inner : j->columns;
}

static void product_row(const job *j, const made *m, void *const *data, int64_t row, double *want) {
    for (int64_t c = 0; c < j->columns; c++) {
        want[c] = 0;
        for (int64_t k = 0; k < j->inner; k++)
            want[c] += value_of(m->in[0], data[0], c * j->inner + k) * value_of(m->in[1], data[1], row * j->inner + k);
    }
}

/* Results lie as [batch][row][head][width]. */
static void attention_row(const job *j, const made *m, void *const *data, int64_t row, double *want) {
    int64_t head = row % j->columns, r = row / j->columns % j->rows, b = row / j->columns / j->rows;
    int64_t keys = j->causal ? r + 1 : j->rows, block = (b * j->columns + head) * j->rows;
    double *p = malloc((size_t)keys * sizeof *p), most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        p[k] = 0;
        for (int64_t d = 0; d < j->inner; d++)
            p[k] += value_of(m->in[0], data[0], (block + r) * j->inner + d) *
                    value_of(m->in[1], data[1], (block + k) * j->inner + d);
        p[k] /= sqrt((double)j->inner);
        if (p[k] > most) most = p[k];
    }
    memset(want, 0, (size_t)j->inner * sizeof *want);
    for (int64_t k = 0; k < keys; k++) sum += p[k] = exp(p[k] - most);
    for (int64_t k = 0; k < keys; k++)
        for (int64_t d = 0; d < j->inner; d++)
            want[d] += p[k] / sum * value_of(m->in[2], data[2], (block + k) * j->inner + d);
    free(p);
}

static void norm_row(const job *j, const made *m, void *const *data, int64_t row, double *want) {
    double most = -INFINITY, sum = 0, energy = 0;
    for (int64_t c = 0; c < j->columns; c++) {
        want[c] = value_of(m->in[0], data[0], row * j->columns + c);
        if (want[c] > most) most = want[c];
        energy += want[c] * want[c];
    }
    for (int64_t c = 0; c < j->columns; c++) sum += exp(want[c] - most);
    for (int64_t c = 0; c < j->columns; c++)
        want[c] = j->kind == SOFTMAX ? exp(want[c] - most) / sum : want[c] / sqrt(energy / (double)j->columns + 1e-6);
}

static double error_of(const job *j, const made *m, void *const *data) {
    int64_t width = width_of(j), rows = ggml_nelements(m->out) / width;
    float *got = malloc((size_t)width * sizeof *got);
    double *want = malloc((size_t)width * sizeof *want), off = 0, all = 0;
    for (int s = 0; s < SAMPLES; s++) {
        int64_t row = (int64_t)s * 7919 % rows;
        ggml_backend_tensor_get(m->out, got, (size_t)(row * width) * sizeof *got, (size_t)width * sizeof *got);
        if (j->kind == PRODUCT)
            product_row(j, m, data, row, want);
        else if (j->kind == ATTENTION)
            attention_row(j, m, data, row, want);
        else
            norm_row(j, m, data, row, want);
        for (int64_t c = 0; c < width; c++) {
            off += ((double)got[c] - want[c]) * ((double)got[c] - want[c]);
            all += want[c] * want[c];
        }
    }
    free(got);
    free(want);
    return sqrt(off / all);
}

/* ---- time ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double microseconds(struct ggml_cgraph *graph, int copies) {
    double times[ROUNDS], start = now();
    do ggml_backend_graph_compute(backend, graph);
    while (now() - start < 0.3);
    for (int i = 0; i < ROUNDS; i++) {
        start = now();
        ggml_backend_graph_compute(backend, graph);
        times[i] = (now() - start) / copies * 1e6;
    }
    qsort(times, ROUNDS, sizeof *times, by_value);
    return times[ROUNDS / 2];
}

static void measure(const job *j, int quick) {
    made m = {0};
    int copies = quick ? 2 : (int)(0.03 / j->seconds) + 1;
    if (copies > MOST_COPIES) copies = MOST_COPIES;
    struct ggml_init_params init = {ggml_tensor_overhead() * (size_t)(copies + 8) +
                                        ggml_graph_overhead_custom((size_t)copies + 8, false),
                                    NULL, true};
    struct ggml_context *ctx = ggml_init(init);
    make_inputs(ctx, j, &m);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, (size_t)copies + 8, false);
    for (int i = 0; i < copies; i++) {
        m.out = operation(ctx, j, &m);
        if (j->kind == PRODUCT || j->kind == ATTENTION) ggml_prec_set_acc(m.out, GGML_PREC_F32);
        ggml_build_forward_expand(graph, m.out);
    }
    if (!ggml_backend_supports_op(backend, m.out)) {
        fprintf(stderr, "%s: the backend does not take it\n", j->name);
        ggml_free(ctx);
        return;
    }
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    if (buffer == NULL) {
        fprintf(stderr, "%s: no memory\n", j->name);
        ggml_free(ctx);
        return;
    }
    void *data[4] = {0};
    for (int i = 0; i < 3 && m.in[i]; i++) data[i] = fill(m.in[i], (unsigned)i + 1);
    if (m.in[3]) fill_mask(m.in[3], j->rows);
    double us = microseconds(graph, copies);
    printf("{\"name\": \"%s\", \"peer\": \"%s\", \"us\": %.1f, \"error\": %.2e}\n", j->name, j->peer, us,
           error_of(j, &m, data));
    fflush(stdout);
    for (int i = 0; i < 3; i++) free(data[i]);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

int main(int argc, char **argv) {
    int divisor = argc > 1 ? atoi(argv[1]) : 1;
    char path[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    if (length < 0 || divisor < 1) return 2;
    path[length] = 0;
    strcpy(strrchr(path, '/'), "/libggml-vulkan.so");
    ggml_backend_reg_t registry = ggml_backend_load(path);
    if (registry == NULL || ggml_backend_reg_dev_count(registry) == 0) {
        fprintf(stderr, "no Vulkan device by %s\n", path);
        return 1;
    }
    backend = ggml_backend_dev_init(ggml_backend_reg_dev_get(registry, 0), NULL);
    if (backend == NULL) return 1;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        job j = jobs[i];
        if (j.kind != ATTENTION && j.columns > 8) j.columns /= divisor;
        if (j.rows > 8) j.rows /= divisor;
        measure(&j, divisor > 1);
    }
    ggml_backend_free(backend);
    return 0;
}
