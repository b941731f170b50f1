/* Private to the reader of kernel text: the cursor, its small vocabulary, and expressions. Every reader
 * returns a status; the first failure names the line. */
#ifndef SMG_KERNEL_PARSE_H
#define SMG_KERNEL_PARSE_H

#include "kernel/kernel.h"

typedef struct kernel_pending { /* the index of an access, read when all accesses are known */
    int access;
    int line;
    const char *at;
} kernel_pending;

typedef struct kernel_reader {
    smg_context *ctx;
    smg_arena *arena;
    smg_kernel *k;
    const char *at;
    int line;
    int depth;                  /* of nested calls in an expression */
    SMG_ARRAY(smg_expr) labels; /* of the line at hand */
    SMG_ARRAY(kernel_pending) pending;
} kernel_reader;

/* ---- vocabulary (kernel_parse_word.c) ---- */
smg_status kernel_read_fail(kernel_reader *r, const char *expected);
bool kernel_read_line_end(kernel_reader *r);                          /* nothing but a comment is left on the line */
bool kernel_read_take(kernel_reader *r, const char *sign);            /* takes it when it comes next */
smg_status kernel_read_sign(kernel_reader *r, const char *sign);      /* must come next */
bool kernel_read_keyword(kernel_reader *r, const char *word);         /* takes it when it is the next word */
smg_status kernel_read_word(kernel_reader *r, const char *word);      /* must be the next word */
smg_status kernel_read_name(kernel_reader *r, const char **out_name); /* plain or quoted, in the arena */
smg_status kernel_read_integer(kernel_reader *r, int64_t low, int64_t high, int64_t *out_value);
smg_status kernel_read_int(kernel_reader *r, int low, int high, int *out_value);
smg_status kernel_read_size(kernel_reader *r, smg_size *out_size);    /* 2*s+1 */
smg_status kernel_read_bracket(kernel_reader *r, smg_size *out_size); /* [2*s+1] */
smg_status kernel_read_axis(kernel_reader *r, int *out_axis);
smg_status kernel_read_tile(kernel_reader *r, int *out_tile);
smg_status kernel_read_list(kernel_reader *r, int capacity, int *axes, int *out_count);

/* ---- expressions (kernel_parse_expr.c) ---- */
smg_status kernel_read_expr(kernel_reader *r, smg_expr *out_expr);

#endif
