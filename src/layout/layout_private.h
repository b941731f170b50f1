/* layout_private.h: what the files of layout/ share. */
#ifndef SMG_LAYOUT_PRIVATE_H
#define SMG_LAYOUT_PRIVATE_H

#include "layout/layout.h"

/* NULL where the layout does not have the axis. */
const smg_layout_axis *layout_axis(const smg_layout *layout, int axis);
/* Does the level's number say the same of both? */
bool layout_same_numbers(const smg_layout *a, const smg_layout *b, smg_layout_level level);

#endif
