/* Sub-classes of views and leaves: the only place where rows of these classes are told apart by name. */
#include "op/op.h"

smg_view_kind smg_op_view(smg_op op) {
    switch (op) {
    case SMG_OP_RESHAPE: return SMG_VIEW_RESHAPE;
    case SMG_OP_TRANSPOSE: return SMG_VIEW_TRANSPOSE;
    case SMG_OP_BROADCAST: return SMG_VIEW_BROADCAST;
    case SMG_OP_SLICE: return SMG_VIEW_SLICE;
    case SMG_OP_WINDOW: return SMG_VIEW_WINDOW;
    default: return SMG_VIEW_NONE;
    }
}

smg_leaf_kind smg_op_leaf(smg_op op) {
    switch (op) {
    case SMG_OP_INPUT:
    case SMG_OP_CONSTANT: return SMG_LEAF_TENSOR;
    case SMG_OP_FILL: return SMG_LEAF_NUMBER;
    case SMG_OP_SIZE: return SMG_LEAF_SIZE;
    case SMG_OP_IOTA: return SMG_LEAF_INDEX;
    default: return SMG_LEAF_NONE;
    }
}
