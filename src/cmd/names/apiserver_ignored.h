/*
 * The flags of kube-apiserver that have no effect here, each with a decision: it is accepted,
 * because nothing depends on it, or the server refuses to start with it, because its user
 * relies on its effect, usually for security. --accept-ignored-flags turns these refusals into a
 * warning. Admission plugins that do not exist here are decided in
 * kube/policy/admission/admission.c.
 *
 * A flag that is translated (apiserver.c) has no row. A flag with neither is refused, too, and
 * fails a test, so that each flag of a new version needs a decision.
 */
#ifndef VIGIL_CMD_NAMES_APISERVER_IGNORED_H
#define VIGIL_CMD_NAMES_APISERVER_IGNORED_H

#include "base/slice.h"

struct apiserver_ignored {
    const char *name;
    const char *why;  /* why the server refuses it; NULL: it is accepted */
    const char *same; /* value of a boolean that asks for what happens here; NULL: none */
};

/* NULL: there is no such row. */
const struct apiserver_ignored *apiserver_ignored_flag(const char *name);
/* All rows, for tests; NULL after the last. */
const struct apiserver_ignored *apiserver_ignored_at(size_t place);

#endif
