/*
 * What a request asks for: its path and query, as the generic API server of Kubernetes reads them.
 *
 *   /api/v1/namespaces/{namespace}/pods/{name}/status        /apis/{group}/{version}/…
 */
#ifndef VIGIL_KUBE_REQUEST_REQUEST_H
#define VIGIL_KUBE_REQUEST_REQUEST_H

#include "base/memory/arena.h"
#include "kube/types/status.h"

/* What a path names below an object (kube/handlers/write/subresource.h). */
enum kube_subresource {
    KUBE_SUBRESOURCE_NONE, /* the object itself */
    KUBE_SUBRESOURCE_STATUS,
    KUBE_SUBRESOURCE_SCALE,
    KUBE_SUBRESOURCE_FINALIZE, /* namespaces/x/finalize */
    KUBE_SUBRESOURCE_PART,     /* another part of the object: kube/handlers/write/part.h */
    KUBE_SUBRESOURCE_POST,     /* binding and eviction of a pod */
    KUBE_SUBRESOURCE_TOKEN,    /* serviceaccounts/x/token, if this server issues tokens */
    KUBE_SUBRESOURCE_UNKNOWN,  /* its kind has no such subresource */
};

/* Decoded; in the arena or in the request. */
struct kube_path {
    struct slice group, version;              /* the group of /api is empty */
    struct slice namespace;                   /* empty: cluster scope, or all namespaces */
    struct slice resource, name, subresource; /* what follows …/proxy is not parsed */
    bool watch;                               /* the old form: /api/v1/watch/… */
};

/*
 * ST_NOT_FOUND: the path names no resource; ST_NOMEM. A path that ends with group and version has
 * an empty resource: it asks for the list of resources.
 */
MUST_CHECK
enum status kube_path_parse(struct arena *arena, struct slice path, struct kube_path *ret_path);

enum kube_version_match {
    KUBE_MATCH_UNSET,
    KUBE_MATCH_NOT_OLDER,
    KUBE_MATCH_EXACT,
    KUBE_MATCH_OTHER
};

/* The options of a list, a watch or a write. */
struct kube_query {
    struct slice label_selector, field_selector;
    struct slice resource_version; /* "" and "0" mean different things */
    enum kube_version_match match;
    struct slice match_text; /* text of resourceVersionMatch; KUBE_MATCH_OTHER if it is unknown */
    int64_t limit;           /* 0: none */
    struct slice continue_token;
    bool watch, allow_bookmarks;
    bool send_initial_events, send_initial_events_given;
    int64_t timeout_s;            /* 0: not given; negative: a watch ends at once */
    struct slice request_timeout; /* "timeout": of a request that is not a watch */
    int64_t request_timeout_ns;   /* 0: not given */
    bool dry_run, dry_run_unknown;
    struct slice dry_run_text; /* as sent; only "All" is supported */
    bool force, force_given;
    bool pretty, pretty_given;
    struct slice field_manager, field_validation;
    struct slice propagation_policy;
    bool orphan_dependents, orphan_given;
    int64_t grace_period_s;      /* -1: not given */
    struct slice include_object; /* for a Table */
    struct slice container;      /* container of a pod, for its log or a command */
};

/* False: a value is invalid, and *status has the error of Kubernetes. */
MUST_CHECK
bool kube_query_parse(struct arena *arena, struct slice query, struct kube_query *ret_query,
                      struct kube_status *status);

/* The first value of this name in a query, as Go's URL.Query().Get; empty: none. ST_NOMEM. */
MUST_CHECK
enum status kube_query_get(struct arena *arena, struct slice query, const char *name,
                           struct slice *ret_value);

/* The same for one value after another: the rest of the query is left. ST_END, ST_NOMEM. */
MUST_CHECK
enum status kube_query_next(struct arena *arena, struct slice *query, const char *name,
                            struct slice *ret_value);

/* Decodes %XX and, in a query, + for a space. ST_MALFORMED, ST_NOMEM. */
MUST_CHECK
enum status kube_percent_decode(struct arena *arena, struct slice text, bool query,
                                struct slice *ret_text);

/*
 * A resourceVersion: digits only, as Go's ParseUint reads them; "" and "0" are 0. Returns NULL, or
 * the error in Go's words. A number that is too large for the store becomes the largest possible.
 */
const char *kube_revision_parse(struct slice text, int64_t *ret_revision);

#endif
