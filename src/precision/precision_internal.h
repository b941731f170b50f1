/* Shared within precision/. */
#ifndef SMG_PRECISION_INTERNAL_H
#define SMG_PRECISION_INTERNAL_H

#include "precision/precision.h"

/* Per node: how much larger a relative rounding of its value is in the outputs (precision_gain.c). */
smg_status precision_gains(smg_graph *g, smg_exprs *exprs, smg_arena *arena, double **out_gain);

#endif
