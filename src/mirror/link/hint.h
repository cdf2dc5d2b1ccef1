/*
 * What an operator may do about a reason for which the cluster cannot be reached or followed: the
 * flag to look at, or the scheme of an endpoint that does not speak the other one.
 */
#ifndef VIGIL_MIRROR_LINK_HINT_H
#define VIGIL_MIRROR_LINK_HINT_H

#include "mirror/link/options.h"

/* A static text that begins with "; ", or "". */
const char *hint_for(const struct upstream_options *options, const char *reason);

#endif
