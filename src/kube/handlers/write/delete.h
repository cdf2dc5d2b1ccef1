/* The deletion of an object: at once, or by marking it if it has finalizers. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_DELETE_H
#define VIGIL_KUBE_HANDLERS_WRITE_DELETE_H

#include "kube/handlers/write/change.h"

/* DeleteOptions, from the body or the query. */
struct kube_delete_options {
    int64_t grace_s; /* -1: not given */
    enum kube_delete_policy {
        KUBE_POLICY_UNSET,
        KUBE_BACKGROUND,
        KUBE_FOREGROUND,
        KUBE_ORPHAN
    } policy;
    const struct json_node *preconditions; /* NULL: none */
    bool dry_run;
};

enum { KUBE_DELETE_OPTIONS_BYTES_MAX = 64 << 10 };
MUST_CHECK
bool kube_delete_options_read(struct kube_call *call, const struct http_request *request,
                              struct kube_delete_options *ret_options);

/* The same for the options in an eviction; NULL: it has none. */
MUST_CHECK
bool kube_delete_options_of(struct kube_call *call, const struct json_node *options,
                            struct kube_delete_options *ret_options);

/* The options as admission policies see them, in the arena of the call. NULL: no memory. */
struct json_node *kube_delete_options_tree(struct kube_call *call,
                                           const struct kube_delete_options *options);

/* The decision of a change that deletes the stored object. For a namespace or definition that it
 * marks, a purge is started. */
enum kube_decision kube_delete_decide(struct kube_change *change,
                                      const struct kube_delete_options *options,
                                      const struct json_node *stored,
                                      struct json_node **ret_object);

#endif
