/*
 * CustomResourceDefinitions as objects: what is done with them besides what is done with all. For
 * every other kind each of these does nothing and returns true. False: call->status says why.
 *
 * What controllers of Kubernetes do a moment later is done at once: who is told that a definition
 * was created can use it.
 */
#ifndef VIGIL_KUBE_API_DEFINITION_H
#define VIGIL_KUBE_API_DEFINITION_H

#include "kube/api/call.h"
#include "kube/object/meta.h"

bool kube_is_definitions(const struct kube_kind *kind);

MUST_CHECK
bool kube_definition_create(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, struct slice name);
/* What is missing and has a default. Before changes are counted: what is filled in is none. */
MUST_CHECK
bool kube_definition_default(struct kube_call *call, const struct kube_meta *meta,
                             struct json_node *object);
/* After kube_definition_default. */
MUST_CHECK
bool kube_definition_update(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, const struct json_node *stored);
/* The first request to delete it: it goes when no object of its kind is left. */
MUST_CHECK
bool kube_definition_mark(const struct kube_meta *meta, struct json_node *object);
/* No object of its kind is left: its finalizer of ours goes, if it has it. *ret_held: it has
 * others.
 */
MUST_CHECK
bool kube_definition_release(const struct kube_meta *meta, struct json_node *object, bool *ret_ours,
                             bool *ret_held);

/* Which names it gets besides others, and whether its kind is served. */
MUST_CHECK
bool kube_definition_settle(const struct kube_meta *meta, struct json_node *object,
                            const struct kube_kinds *kinds);

#endif
