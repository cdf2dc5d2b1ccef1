/* The inside of an object. */
#ifndef VIGIL_KUBECLIENT_DATA_OBJECT_H
#define VIGIL_KUBECLIENT_DATA_OBJECT_H

#include "base/slice.h"
#include "base/status.h"

#include <vigil/kube/object.h>

/*
 * Makes an object from its JSON or from an envelope of protobuf (protobuf.h), which is copied.
 *
 * ST_MALFORMED: it has no name, or is invalid: only the part up to the name, namespace, uid and
 * resourceVersion is examined. ST_LIMIT: it is too long. ST_NOMEM.
 */
MUST_CHECK
enum status object_new(struct slice sent, struct vigil_kube_object **ret_object);

/* What object_new was given. */
struct slice object_sent(const struct vigil_kube_object *object);
struct slice object_key(const struct vigil_kube_object *object);
struct slice object_version(const struct vigil_kube_object *object);
/* A number for the owner of a cache, which is 0 at first; used only with the cache's lock held. */
uint32_t object_mark(const struct vigil_kube_object *object);
void object_set_mark(struct vigil_kube_object *object, uint32_t mark);
/* The same for an indexer: how many values it has in all indexes. */
uint32_t object_indexed(const struct vigil_kube_object *object);
void object_set_indexed(struct vigil_kube_object *object, uint32_t indexed);

#endif
