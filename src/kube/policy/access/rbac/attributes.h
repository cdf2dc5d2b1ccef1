/*
 * What a request wants to do, in the terms of Kubernetes' authorization: a verb and a resource, or
 * a verb and a path. They are found with the same parsers that the handlers use, so that what is
 * authorized is what is done.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_ATTRIBUTES_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_ATTRIBUTES_H

#include "kube/policy/access/rbac/user.h"
#include "kube/types/status.h"

struct http_request;

struct kube_attributes {
    bool of_resource;
    struct slice verb;
    struct slice group, resource, subresource, namespace, name; /* for a resource */
    struct slice field_selector; /* that of a list, watch or deletecollection; may be empty */
    struct slice path;           /* otherwise */
};

/* In the arena, which remembers if it ran out. */
void kube_attributes_of(struct arena *arena, const struct http_request *request,
                        struct kube_attributes *ret_attributes);

/* Whether the field selector requires this value of the field. Fields are not compared with those
 * of the kind; a selector that cannot be parsed requires nothing. */
bool kube_attributes_select(const struct kube_attributes *attributes, struct slice field,
                            struct slice value);

/* Fails with Kubernetes' text: `pods is forbidden: User "x" cannot list resource "pods" in API
 * group
 * "" in the namespace "y"`. reason may be "". Returns false. The text is in the arena. */
bool kube_fail_attributes(struct arena *arena, struct kube_status *status,
                          const struct kube_user_info *user,
                          const struct kube_attributes *attributes, const char *reason);

#endif
