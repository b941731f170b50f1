# Rates are fitted to the prices of one version of the sources.
smg_add_fingerprint(${SMG_TARGET})
