/*
 * A call: a request to a Kubernetes API server and its answer. Functions such as vigil_kube_get
 * create it.
 *
 *     created ──start──► running ──► completed
 *        └───────────────cancel────────▲
 *
 * It completes exactly once: with an answer, or with an error. There are two ways to wait:
 *
 *     vigil_kube_call_run(call)                   blocks until it has completed
 *     vigil_kube_call_start(call, done, user)     calls done
 *
 * As in client-go, a request is repeated at most 10 times if the server answers 429 or 5xx with a
 * Retry-After field, after the time that it names; and one that only reads if the connection breaks
 * before an answer. A request that may have changed something is not repeated otherwise:
 * vigil_error.outcome then says whether it was sent.
 *
 * Every function accepts NULL for the call, as if it had failed with VIGIL_ERROR_MEMORY. So only
 * the result needs a check:
 *
 *     vigil_kube_target pod = {.version = "v1", .resource = "pods",
 *                              .name_space = "default", .name = "web"};
 *     vigil_kube_call *call = vigil_kube_get(kube, &pod);
 *     if (vigil_kube_call_run(call) == VIGIL_OK)
 *         use(vigil_kube_call_object(call));
 *     else
 *         fprintf(stderr, "%s\n", vigil_kube_call_error(call)->text);
 *     vigil_kube_call_free(call);
 *
 * Errors: a call that the server refuses completes with VIGIL_ERROR_SERVER, or with
 * VIGIL_ERROR_UNAUTHENTICATED (401), VIGIL_ERROR_PERMISSION_DENIED (403) or
 * VIGIL_ERROR_TOO_MANY_REQUESTS (429); vigil_kube_call_status says more. Others are those of the
 * connection: VIGIL_ERROR_UNAVAILABLE, _TIMEOUT, _CANCELED, _TOO_LARGE, _PROTOCOL, _MEMORY,
 * _SYSTEM; and VIGIL_ERROR_ARGUMENT for a target or option that cannot be sent.
 */
#ifndef VIGIL_KUBE_CALL_H
#define VIGIL_KUBE_CALL_H

#include <vigil/kube/client.h>
#include <vigil/kube/object.h>
#include <vigil/kube/status.h>
#include <vigil/kube/target.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube_call vigil_kube_call;

/* Called once when the call has completed, also if it failed. It may free the call. */
typedef void (*vigil_kube_done)(vigil_kube_call *call, void *user);

/* -- Reading -- */

/* Reads one object, or a subresource of it. */
VIGIL_API vigil_kube_call *vigil_kube_get(vigil_kube *kube, const vigil_kube_target *target);

/* What a list selects. Zeroed except for size: everything, in its most recent state. */
typedef struct vigil_kube_list_options {
    size_t size;
    const char *label_selector, *field_selector; /* see vigil/kube/selector.h */
    const char *version;       /* resourceVersion: "0" for any state that the server has cached */
    const char *version_match; /* resourceVersionMatch: "Exact", "NotOlderThan" */
    int64_t limit;             /* limit on the objects in the answer; 0: none */
    const char *continue_token;
} vigil_kube_list_options;

/* Reads a collection, or one page of it. options may be NULL. */
VIGIL_API vigil_kube_call *vigil_kube_list(vigil_kube *kube, const vigil_kube_target *target,
                                           const vigil_kube_list_options *options);

/* Receives an object of a list; it is borrowed, and may be kept with vigil_kube_object_ref. */
typedef void (*vigil_kube_item)(vigil_kube_call *call, const vigil_kube_object *object, void *user);

/*
 * Reads a whole collection page by page, and passes on each object as it arrives, before the
 * completion: memory does not depend on the size of the collection. options->limit is the size of a
 * page; 0 means 500. If the server has forgotten the state of the first page, the rest is read as
 * of a newer one, as the server offers it, so that every object that existed all the time is passed
 * on. The timeout counts for each page.
 */
VIGIL_API vigil_kube_call *vigil_kube_list_each(vigil_kube *kube, const vigil_kube_target *target,
                                                const vigil_kube_list_options *options,
                                                vigil_kube_item item, void *user);

/* -- Writing -- */

/* Zeroed except for size: an ordinary write. */
typedef struct vigil_kube_write_options {
    size_t size;
    const char *field_manager;    /* needed for apply */
    int force;                    /* apply: take over fields of other managers */
    int dry_run;                  /* nothing is stored */
    const char *field_validation; /* "Strict", "Warn", "Ignore" */
} vigil_kube_write_options;

/* Creates an object in a collection. The target has no name, except for subresources such as
 * "binding" or "eviction". options may be NULL, here and below. */
VIGIL_API vigil_kube_call *vigil_kube_create(vigil_kube *kube, const vigil_kube_target *target,
                                             vigil_bytes object,
                                             const vigil_kube_write_options *options);
/* Replaces an object. It fails with the reason "Conflict" if the object has a resourceVersion and
 * was changed since. */
VIGIL_API vigil_kube_call *vigil_kube_update(vigil_kube *kube, const vigil_kube_target *target,
                                             vigil_bytes object,
                                             const vigil_kube_write_options *options);

/* How a patch is written. */
enum vigil_kube_patch_type {
    VIGIL_KUBE_PATCH_JSON,      /* a list of operations (RFC 6902) */
    VIGIL_KUBE_PATCH_MERGE,     /* an object with changed members (RFC 7386) */
    VIGIL_KUBE_PATCH_STRATEGIC, /* the same, with lists merged by their keys; built-in kinds only */
    VIGIL_KUBE_PATCH_APPLY      /* server-side apply, in JSON or YAML; see vigil_kube_apply */
};

/* Changes a part of an object. */
VIGIL_API vigil_kube_call *vigil_kube_patch(vigil_kube *kube, const vigil_kube_target *target,
                                            int patch_type, vigil_bytes patch,
                                            const vigil_kube_write_options *options);
/* Server-side apply: the object becomes as described, or is created; fields that the manager does
 * not describe any more are removed. */
VIGIL_API vigil_kube_call *vigil_kube_apply(vigil_kube *kube, const vigil_kube_target *target,
                                            vigil_bytes object, const char *field_manager,
                                            int force);

/* Zeroed except for size: an ordinary deletion. */
typedef struct vigil_kube_delete_options {
    size_t size;
    const char *propagation;       /* "Foreground", "Background", "Orphan" */
    const int64_t *grace_period_s; /* NULL: the server's default */
    const char *uid;               /* delete only the object with this uid */
    const char *version;           /* and with this resourceVersion */
    int dry_run;
} vigil_kube_delete_options;

/* Deletes an object. The answer is the object if it has finalizers, otherwise a Status. options may
 * be NULL. */
VIGIL_API vigil_kube_call *vigil_kube_delete(vigil_kube *kube, const vigil_kube_target *target,
                                             const vigil_kube_delete_options *options);
/* Deletes every object of a collection that `selected` selects. Both options may be NULL. */
VIGIL_API vigil_kube_call *vigil_kube_delete_collection(vigil_kube *kube,
                                                        const vigil_kube_target *target,
                                                        const vigil_kube_delete_options *options,
                                                        const vigil_kube_list_options *selected);

/* Any other request: path begins with "/" and may have a query; body may be empty, and content_type
 * NULL for application/json. */
VIGIL_API vigil_kube_call *vigil_kube_request(vigil_kube *kube, const char *method,
                                              const char *path, const char *content_type,
                                              vigil_bytes body);

/* -- Life of a call -- */

/* Sets the timeout, before the call is started. It counts from the start, with all repetitions. 0:
 * none. The default is vigil_kube_options.call_timeout_ms. */
VIGIL_API void vigil_kube_call_set_timeout(vigil_kube_call *call, int64_t timeout_ms);
/* Asks for objects in Kubernetes' protobuf instead of JSON, before the call is started; custom
 * resources only exist as JSON. What is sent stays JSON. */
VIGIL_API void vigil_kube_call_want_protobuf(vigil_kube_call *call);

/* Starts a call; done is called once, later. A call can be started once. If the result is not
 * VIGIL_OK, the call has not been started, and done is not called. done may be NULL; to send a call
 * and forget it, pass a function that frees it. vigil_kube_free, too, calls done for every call
 * that has not completed, with VIGIL_ERROR_CANCELED. From then on calls cannot be started, and the
 * result is VIGIL_ERROR_CANCELED. */
VIGIL_API int vigil_kube_call_start(vigil_kube_call *call, vigil_kube_done done, void *user);
/* Starts the call and waits until it has completed; returns the code of its error. In the program's
 * loop it does what vigil_kube_process does. Inside a callback it returns VIGIL_ERROR_WOULD_BLOCK,
 * and the call can still be started. */
VIGIL_API int vigil_kube_call_run(vigil_kube_call *call);
/* Completes a running call with VIGIL_ERROR_CANCELED, unless it has completed already. */
VIGIL_API void vigil_kube_call_cancel(vigil_kube_call *call);
/* Frees a call and its answer. A running call is cancelled first, and done is not called any more;
 * if done is running on another thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_kube_call_free(vigil_kube_call *call);

/* Why a call has failed. The code is VIGIL_OK if it has succeeded, and before it has completed.
 * Never NULL. */
VIGIL_API const vigil_error *vigil_kube_call_error(const vigil_kube_call *call);
/* The Status of a call that the server refused; its code is 0 if there is none. Never NULL. */
VIGIL_API const vigil_kube_status *vigil_kube_call_status(const vigil_kube_call *call);
/* The body of the answer; empty before the completion, and for vigil_kube_list_each. */
VIGIL_API vigil_bytes vigil_kube_call_body(const vigil_kube_call *call);
/* The object that the answer is; NULL if it is not one. It belongs to the call. */
VIGIL_API const vigil_kube_object *vigil_kube_call_object(const vigil_kube_call *call);
/* The resourceVersion of a list; "" if the answer has none. */
VIGIL_API const char *vigil_kube_call_version(const vigil_kube_call *call);
/* The token of the next page of a list; "" if there is none. */
VIGIL_API const char *vigil_kube_call_continue(const vigil_kube_call *call);
/* The user pointer of vigil_kube_call_start. */
VIGIL_API void *vigil_kube_call_user(const vigil_kube_call *call);

#ifdef __cplusplus
}
#endif

#endif
