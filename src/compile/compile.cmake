# What the program was built from is part of the key of the plan cache.
smg_add_fingerprint(${SMG_TARGET})
