/*
 * What the expression of a mutation has created, as JSON: an apply configuration, or a list of
 * operations. Mirrors what Kubernetes makes of such values: it first has values of Go, or of
 * protobuf's JSON, so that a few values of the language have no counterpart.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_CREATED_H
#define VIGIL_KUBE_POLICY_POLICIES_CREATED_H

#include "cel/value/value.h"

/* Where the trees and texts are made, and why they could not be. */
struct kube_created {
    struct arena *arena;
    struct cel_work *work;
    struct slice why; /* empty: there was no memory, which the arena remembers */
};

/* The text of a number that stands for null, which Kubernetes takes for a number in an Object: it
 * fits no type. Compared by its address. */
extern const char kube_created_null[];

/* The members of an Object. NULL: `why` says why not. */
struct json_node *kube_created_object(struct kube_created *created, struct cel_value object);
/* A list of {"op": …, "path": …, "from": …, "value": …}, from a list of JSONPatch. The same. */
struct json_node *kube_created_patch(struct kube_created *created, struct cel_value list);

#endif
