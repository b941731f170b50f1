/* What the files of graph/ share: checked making of nodes, half precision, and evaluation of one node. */
#ifndef SMG_GRAPH_PRIVATE_H
#define SMG_GRAPH_PRIVATE_H

#include "graph/graph.h"

/* ---- graph_verify.c ---- */

/* Checks operands and attributes and sets the result's type and dims (those given by the caller for
 * leaves, reshape and broadcast are checked). */
smg_status smg_node_infer(smg_graph *g, smg_node *node);
smg_status smg_graph_verify(smg_graph *g);
/* "f32[b, 64]" */
void smg_node_print_type(const smg_graph *g, const smg_node *node, smg_text *text);
smg_status smg_product(smg_graph *g, const smg_size *dims, int rank, smg_size *out_product);

/* ---- graph_build.c ---- */

/* What every builder starts with: false, or NULL, with the failure kept in the graph (smg_build_stick). */
bool smg_build_open(smg_graph *g, const char *what);
const smg_node *smg_build_node(smg_graph *g, const char *what, smg_value value);
bool smg_build_size(smg_graph *g, const char *what, const char *text, smg_size *out_size);
/* "batch, 2*s, 64" up to `end` ('\0' or ']'), which is not consumed. */
smg_status smg_dims_parse(smg_graph *g, const char **cursor, char end, smg_size *dims, int *out_rank);
smg_status smg_labels_parse(smg_graph *g, const char *labels, smg_node *node);

/* ---- graph_lex.c: tokens of the text form. Each moves the cursor past what it read, leading spaces
 * included, or leaves it and returns false. ---- */

bool smg_lex_char(const char **cursor, char c);
/* [A-Za-z_/][A-Za-z0-9_./]* or %[0-9]+ */
bool smg_lex_name(const char **cursor, const char **out_begin, size_t *out_length);
bool smg_lex_word(const char **cursor, const char *word); /* a whole name that is `word` */
bool smg_lex_int(const char **cursor, int64_t *out_value);
bool smg_lex_number(const char **cursor, double *out_value); /* inf, -inf and nan included */
/* A JSON string literal; *out_text is in the arena, NULL when memory is out. */
bool smg_lex_string(smg_arena *arena, const char **cursor, char **out_text);
bool smg_name_is_plain(const char *name); /* smg_lex_name reads all of it, and it is no %number */

/* ---- graph_eval*.c: one node ---- */

typedef struct eval_scope {
    smg_context *ctx;
    const smg_graph *g;
    const int64_t *symbols;
    smg_exprs *exprs;
} eval_scope;

/* The node's value from its operands'; memory of out->data is the context's (smg_array_release). */
smg_status smg_eval_node(eval_scope *scope, const smg_node *node, const smg_array *const *operand, smg_array *out);
smg_status smg_eval_contract(eval_scope *scope, const smg_node *node, const smg_array *a, const smg_array *b,
                             smg_array *out);
smg_status smg_array_reserve(smg_context *ctx, smg_array *array);
/* Row-major strides of `array`. */
void smg_array_strides(const smg_array *array, int64_t *strides);
/* Copies: element at index i (over dims) is from base[sum i*stride]. */
void smg_array_copy_strided(const double *base, int rank, const int64_t *dims, const int64_t *strides, double *out);

#endif
