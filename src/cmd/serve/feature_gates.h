/*
 * --feature-gates of etcd 3.7: NAME=true,NAME=false. InitialCorruptCheck reads all that is stored
 * before serving; no other makes a difference on one node, but the names are checked as etcd checks
 * them, so that a typing mistake is found, and shown as metrics.
 */
#ifndef VIGIL_CMD_SERVE_FEATURE_GATES_H
#define VIGIL_CMD_SERVE_FEATURE_GATES_H

#include "base/error.h"

#include <stdbool.h>

struct feature_gate {
    const char *name;
    const char *stage; /* ALPHA or BETA */
    bool enabled;
};

enum { FEATURE_GATES = 11 };

/* All of them, by name: etcd's defaults with what the text changes. */
MUST_CHECK
enum status feature_gates_read(const char *text, struct feature_gate ret_gates[FEATURE_GATES],
                               struct error *error);

#endif
