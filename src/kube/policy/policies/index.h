/*
 * Indexes of policies and bindings, which lookups keep with each version of a shelf: a text, such
 * as the resource that a rule names, leads to the objects that were put under it.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_INDEX_H
#define VIGIL_KUBE_POLICY_POLICIES_INDEX_H

#include "kube/policy/lookup/shelf.h"
#include "kube/policy/policies/match.h"

typedef void kube_policy_index_fn(struct version_map *index, struct slice text,
                                  const struct kube_lookup_object *object);

void kube_policy_index_put(struct version_map *index, struct slice text,
                           const struct kube_lookup_object *object);
void kube_policy_index_remove(struct version_map *index, struct slice text,
                              const struct kube_lookup_object *object);
size_t kube_policy_index_bytes(struct slice text, const struct kube_lookup_object *object);

/* Calls fn, which may be NULL, for each resource that the rules name, or for "*" if they concern
 * every resource. Returns what the index takes for it. */
size_t kube_policy_index_match(const struct kube_match *match, struct version_map *index,
                               kube_policy_index_fn *fn, const struct kube_lookup_object *object);

/* Whether there is an object under the text. May be wrong if the text is very long: then true. */
bool kube_policy_index_has(const struct version_map *index, struct slice text);
/* Calls fn for each object under the text, by name, until it returns false, which is returned. */
bool kube_policy_index_each(const struct version_map *index, struct slice text,
                            bool (*fn)(void *ctx, const struct kube_lookup_object *object),
                            void *ctx);

#endif
