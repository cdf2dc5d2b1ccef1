/*
 * The few rules of what is in an object that clients feel at once: a secret's texts become its
 * data, and what says that it does not change does not. All else in spec is its author's.
 */
#ifndef VIGIL_KUBE_OBJECT_CONTENT_H
#define VIGIL_KUBE_OBJECT_CONTENT_H

#include "kube/object/meta.h"

/* A secret's stringData goes into data, in base64, and its type is Opaque if it has none. */
MUST_CHECK
bool kube_content_settle(const struct kube_meta *meta, struct json_node *object);

/* False: what may not change has changed, and *status says what, as Kubernetes would. */
MUST_CHECK
bool kube_content_keeps(const struct kube_meta *meta, const struct json_node *old,
                        const struct json_node *object);

#endif
