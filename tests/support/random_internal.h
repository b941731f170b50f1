/* What the files of the random graphs share: values with an interval and a bound on their rounding error. */
#ifndef TESTS_RANDOM_INTERNAL_H
#define TESTS_RANDOM_INTERNAL_H

#include "random_graph.h"

#define POOL 64
#define RANK 4
#define MAX_VALUE 60.0

/* k * s^a * t^b */
typedef struct extent {
    int64_t k;
    int s, t;
} extent;

typedef struct item {
    smg_value v;
    int rank;
    extent dim[RANK];
    double low, high, error;
    bool view;  /* not a result of its own */
    bool moved; /* a view of something */
    bool used;
} item;

typedef struct maker {
    smg_graph *g;
    const random_options *o;
    uint64_t state;
    item pool[POOL];
    int count;
} maker;

double random_epsilon(const maker *m);
double random_max_error(const maker *m);
int random_draw(maker *m, int limit);
int64_t random_value_of(const maker *m, extent e);
bool random_same(extent a, extent b);
bool random_is_static(extent e);
double random_magnitude(const item *i);
void random_dims_text(const item *i, char out[128]);
/* Within range, error and size, and the pool has room. */
bool random_tame(const maker *m, const item *i);
/* Adds a result; one more rounding. */
void random_keep(maker *m, item i);
/* Adds a view of `a`. */
void random_keep_view(maker *m, item *a, item r);
item *random_pick(maker *m);
void random_scale(maker *m, item *r, double factor);

/* random_views.c: borders, windows, joins, scans, predicates over two positions, odd reshapes. */
void random_view(maker *m);

#endif
