/*
 * Writes the events of a watch, one line each, with the difference to the last version of the
 * object:
 *
 *     10:22:31.512  MODIFIED  default/web  version 1240, changed <1 s ago
 *                   ~ spec.replicas: 1 > 2
 *
 * The last versions are kept up to a limit; objects beyond it are shown without a difference. The
 * thread of the callbacks.
 */
#ifndef VIGIL_CMD_KUBE_EVENT_VIEW_H
#define VIGIL_CMD_KUBE_EVENT_VIEW_H

#include "kubeclient/informer/indexer.h"

#include <stdio.h>
#include <vigil/kube/watch.h>

enum { EVENT_VIEW_BYTES_MAX = 256 << 20 }; /* limit on the size of last versions */

struct event_view {
    FILE *to;
    bool color, json, differences;
    struct indexer last; /* versions of the objects */
};

void event_view_init(struct event_view *view, FILE *to);
void event_view_fini(struct event_view *view);

/* wall_ns is the time at which the event arrived. */
void event_view_show(struct event_view *view, const vigil_kube_event *event, int64_t wall_ns);

/* How long before a time the object was changed, in seconds, as far as it says so (managedFields,
 * creation and deletion); -1 if it does not. */
int64_t event_view_age(vigil_bytes object, int64_t wall_s);

#endif
