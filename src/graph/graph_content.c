/* What is asked of the contents of constants of floats. Answers about large ones are kept with the graph: what was made
 * of them is right only for constants of which the answer is the same. */
#include "graph/graph_private.h"

#include <float.h>
#include <math.h>

#define LARGEST 0x1p60
#define SMALLEST 0x1p-60

/* Far from the ends of the exponents. */
static bool in_range(double value) {
    double size = fabs(value);
    return isfinite(value) && size <= LARGEST && (size >= SMALLEST || !(size > 0.0));
}

static bool all_in_range(smg_type type, const void *data, int64_t elements, bool no_zero) {
    for (int64_t i = 0; i < elements; i++) {
        double value = smg_host_get(type, data, i);
        if (!in_range(value) || (no_zero && !(fabs(value) > 0.0))) return false;
    }
    return true;
}

/* Its bits as an integer are in the order of sizes; 0 where it is not finite. */
static int32_t size_bits(const void *data, int64_t at) {
    static const float most = FLT_MAX;
    int32_t size, finite;
    memcpy(&size, (const uint8_t *)data + at * (int64_t)sizeof(size), sizeof(size));
    memcpy(&finite, &most, sizeof(finite));
    size &= INT32_MAX;
    return size <= finite ? size : 0;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

#define SIDES 16 /* maxima that do not wait for each other, of integers: compilers compare several at once */

static double largest_f32(const void *data, int64_t elements) {
    int32_t side[SIDES] = {0};
    int64_t i = 0;
    float largest;
    for (; i + SIDES <= elements; i += SIDES)
        for (int k = 0; k < SIDES; k++) side[k] = larger(side[k], size_bits(data, i + k));
    for (; i < elements; i++) side[0] = larger(side[0], size_bits(data, i));
    for (int k = 1; k < SIDES; k++) side[0] = larger(side[0], side[k]);
    memcpy(&largest, &side[0], sizeof(largest));
    return (double)largest;
}

/* Of 16 bits, as signed integers, of which every vector unit has maxima: an infinity and above are not finite. */
static int16_t larger_16(int16_t largest, int16_t bits, int16_t ends) {
    int16_t size = (int16_t)(bits & INT16_MAX);
    size = size < ends ? size : 0;
    return size > largest ? size : largest;
}

static double largest_16(smg_type type, const void *data, int64_t elements) {
    int16_t side[SIDES] = {0}, some[SIDES], ends = 0;
    const uint8_t *at = data;
    int64_t i = 0;
    smg_host_set(type, &ends, 0, (double)INFINITY);
    for (; i + SIDES <= elements; i += SIDES) {
        memcpy(some, at + i * (int64_t)sizeof(*some), sizeof(some));
        for (int k = 0; k < SIDES; k++) side[k] = larger_16(side[k], some[k], ends);
    }
    for (; i < elements; i++) {
        memcpy(some, at + i * (int64_t)sizeof(*some), sizeof(*some));
        side[0] = larger_16(side[0], some[0], ends);
    }
    for (int k = 1; k < SIDES; k++) side[0] = larger_16(side[0], side[k], ends);
    return smg_host_get(type, side, 0);
}

double smg_content_largest(smg_type type, const void *data, int64_t elements) {
    return type == SMG_TYPE_F32 ? largest_f32(data, elements) : largest_16(type, data, elements);
}

bool smg_content_fits(smg_type type, double largest) {
    return largest < smg_type_limit(type) && (largest >= smg_type_least(type) || !(largest > 0));
}

#define ANSWER_1 256 /* of a size of 1; others in half octaves */
#define MOST 65504.0 /* a larger element is there to leave others out */

/* 0: all that is looked at is 0. */
static int size_of(smg_type type, const void *data, int64_t elements) {
    int64_t step = elements / SMG_HOST_ELEMENTS + 1, seen = 0;
    double squares = 0;
    for (int64_t i = 0; i < elements; i += step) {
        double value = smg_host_get(type, data, i);
        if (!(fabs(value) <= MOST)) continue;
        squares += value * value;
        seen++;
    }
    if (!(squares > 0)) return 0;
    return (int)fmax(1, rint(log2(squares / (double)seen)) + ANSWER_1);
}

double smg_content_size(int answer) {
    return answer > 0 ? exp2((answer - ANSWER_1) / 2.0) : 0;
}

int smg_content_answer(smg_content question, smg_type type, const void *data, int64_t elements) {
    switch (question) {
    case SMG_CONTENT_IN_RANGE: return all_in_range(type, data, elements, false);
    case SMG_CONTENT_NO_ZERO: return all_in_range(type, data, elements, true);
    case SMG_CONTENT_F16: return smg_content_fits(SMG_TYPE_F16, smg_content_largest(type, data, elements));
    case SMG_CONTENT_BF16: return smg_content_fits(SMG_TYPE_BF16, smg_content_largest(type, data, elements));
    case SMG_CONTENT_SIZE: return size_of(type, data, elements);
    case SMG_CONTENT_COUNT: break;
    }
    return 0;
}

int smg_graph_content(smg_graph *g, smg_content question, smg_type type, const void *data, int64_t elements) {
    if (elements <= SMG_HOST_ELEMENTS) return elements >= 0 ? smg_content_answer(question, type, data, elements) : 0;
    for (int i = 0; i < g->facts.count; i++) {
        const smg_content_fact *fact = &g->facts.items[i];
        if (fact->data == data && fact->elements == elements && fact->question == question) return fact->answer;
    }
    smg_content_fact *fact = SMG_ARRAY_PUSH(g->arena, &g->facts);
    if (fact == NULL) return 0; /* memory is out, which the arena's context says */
    *fact = (smg_content_fact){.type = type, .data = data, .elements = elements, .question = question};
    fact->answer = smg_content_answer(question, type, data, elements);
    return fact->answer;
}
