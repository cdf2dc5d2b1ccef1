/*
 * Events have two groups and one place: what events.k8s.io calls `regarding` and `note` the core
 * calls `involvedObject` and `message`. They are stored as the core has them, so that who reads
 * finds what anybody wrote.
 */
#ifndef VIGIL_KUBE_OBJECT_EVENT_H
#define VIGIL_KUBE_OBJECT_EVENT_H

#include "codec/json/tree.h"
#include "kube/resource/kind.h"

/* The kind is shown by other names than it is stored by. */
static inline bool kube_event_is_renamed(const struct kube_kind *kind)
{
    return kind->group[0] == 'e' && !(kind->flags & KUBE_CUSTOM) &&
           strcmp(kind->group, "events.k8s.io") == 0;
}

/* In place. ST_NOMEM; ST_MALFORMED: it is no object. */
MUST_CHECK
enum status kube_event_show(struct arena *arena, struct json_node *object);
MUST_CHECK
enum status kube_event_store(struct arena *arena, struct json_node *object);

#endif
