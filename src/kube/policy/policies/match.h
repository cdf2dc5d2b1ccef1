/*
 * What an admission policy, a binding or a webhook concerns (spec.matchConstraints,
 * spec.matchResources): rules of operations and resources, and selectors of namespaces and objects.
 *
 *     excluded by a rule? ─► concerned by a rule? ─► namespace selected? ─► object selected?
 *
 * With matchPolicy Equivalent a rule also concerns the same objects in another version of their
 * kind, and the policy then sees them in that version. Read-only once it was read; any thread.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_MATCH_H
#define VIGIL_KUBE_POLICY_POLICIES_MATCH_H

#include "kube/policy/access/rbac/user.h"
#include "kube/types/kind.h"

/* Bits of operations. */
enum {
    KUBE_MATCH_CREATE = 1 << 0,
    KUBE_MATCH_UPDATE = 1 << 1,
    KUBE_MATCH_DELETE = 1 << 2,
    KUBE_MATCH_CONNECT = 1 << 3,
    KUBE_MATCH_ALL = 15,
};

enum kube_match_scope { KUBE_SCOPE_ALL, KUBE_SCOPE_NAMESPACED, KUBE_SCOPE_CLUSTER };

struct kube_match_rule {
    unsigned operations;
    enum kube_match_scope scope;
    struct kube_texts groups, versions, resources;
    struct kube_texts names; /* none: every name */
};

struct kube_match_rules {
    struct kube_match_rule *items;
    size_t count;
};

struct kube_match {
    struct kube_match_rules rules; /* none: every request */
    struct kube_match_rules excludes;
    bool never; /* a webhook without rules */
    bool exact; /* matchPolicy Exact */
    /* NULL: everything is selected. */
    const struct json_node *namespace_selector, *object_selector;
};

/* Reads a policy's matchConstraints or a binding's matchResources; match NULL: everything matches.
 * It borrows the texts of the tree, which must be in the arena. False: no memory. */
MUST_CHECK
bool kube_match_read(struct arena *arena, const struct json_node *match, struct kube_match *to);
/* The same for a webhook, which has rules, selectors and matchPolicy, and excludes nothing. */
MUST_CHECK
bool kube_match_read_webhook(struct arena *arena, const struct json_node *webhook,
                             struct kube_match *to);
/* Whether a rule names every resource, or there is no rule that limits it. */
bool kube_match_is_of_any_resource(const struct kube_match *match);

/* A copy of a tree with its own text, in the arena; NULL: node is NULL, or there is no memory. */
const struct json_node *kube_match_keep(struct arena *arena, const struct json_node *node);

/* A request as rules see it; everything is borrowed. */
struct kube_match_request {
    const struct kube_kind *kind; /* the requested resource */
    struct slice subresource;
    unsigned operation;
    struct slice namespace; /* that of a namespace is itself */
    struct slice name;      /* empty: it is generated */
    /* The same resource in other versions or groups. */
    const struct kube_kind *const *equivalents;
    size_t equivalent_count;
};

/* Whether the rules concern the request, apart from selectors. names: whether the names of rules
 * count. *ret_kind: the kind whose rule matches, that of the request or an equivalent one. */
MUST_CHECK
bool kube_match_resource(const struct kube_match *match, const struct kube_match_request *request,
                         bool names, const struct kube_kind **ret_kind);

/* Whether the selectors select it. */
static inline bool kube_match_needs_namespace(const struct kube_match *match,
                                              const struct kube_match_request *request)
{
    return match->namespace_selector &&
           (request->namespace.len || kube_kind_is(request->kind, "", "namespaces"));
}
bool kube_match_namespace(const struct kube_match *match, const struct json_node *namespace_object);
bool kube_match_object(const struct kube_match *match, const struct json_node *object,
                       const struct json_node *old);

#endif
