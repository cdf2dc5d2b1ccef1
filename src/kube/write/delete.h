/* How an object is deleted: at once, or by marking it for those whose finalizers it has. */
#ifndef VIGIL_KUBE_WRITE_DELETE_H
#define VIGIL_KUBE_WRITE_DELETE_H

#include "kube/write/change.h"

/* DeleteOptions, from the body or the query. */
struct kube_delete_options {
    int64_t grace_s; /* -1: not said */
    enum { KUBE_POLICY_UNSET, KUBE_BACKGROUND, KUBE_FOREGROUND, KUBE_ORPHAN } policy;
    const struct json_node *preconditions; /* NULL: none */
    bool dry_run;
};

enum { KUBE_DELETE_OPTIONS_BYTES_MAX = 64 << 10 };
MUST_CHECK
bool kube_delete_options_read(struct kube_call *call, const struct http_request *request,
                              struct kube_delete_options *ret_options);

/* The same of the options in an eviction; NULL: it has none. */
MUST_CHECK
bool kube_delete_options_of(struct kube_call *call, const struct json_node *options,
                            struct kube_delete_options *ret_options);

/* What a change decides that deletes what is stored. A namespace or definition that is marked by it
 * is emptied from then on, whoever decides so. */
enum kube_decision kube_delete_decide(struct kube_change *change,
                                      const struct kube_delete_options *options,
                                      const struct json_node *stored,
                                      struct json_node **ret_object);

#endif
