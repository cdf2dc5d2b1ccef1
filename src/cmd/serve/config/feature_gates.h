/*
 * --feature-gates of etcd 3.7: NAME=true,NAME=false. InitialCorruptCheck verifies the whole store
 * before serving. The other gates have no effect on one node, but their names are checked as in
 * etcd, so that typing mistakes are found, and they appear as metrics.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_FEATURE_GATES_H
#define VIGIL_CMD_SERVE_CONFIG_FEATURE_GATES_H

#include "base/error.h"

#include <stdbool.h>

struct feature_gate {
    const char *name;
    const char *stage; /* ALPHA or BETA */
    bool enabled;
};

enum { FEATURE_GATES = 11 };

/* All gates by name: etcd's defaults, changed by the text. */
MUST_CHECK
enum status feature_gates_read(const char *text, struct feature_gate ret_gates[FEATURE_GATES],
                               struct error *error);

#endif
