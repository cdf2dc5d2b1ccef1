/*
 * The AdmissionReview that an admission webhook is sent, and the one it answers with, in both
 * versions of admission.k8s.io, as kube-apiserver writes and reads them.
 *
 *     write ─► POST ─► read: ST_OK, a verdict ─► allowed: patch, warnings
 *                        │                  └─► denied: kube_webhook_refuse makes the answer
 *                        └─► no verdict: the call has failed, and failurePolicy decides
 *
 * An answer comes from outside: its length, its nesting and what it takes in memory are limited,
 * and nothing of it is trusted but its verdict. Without state; any thread.
 */
#ifndef VIGIL_KUBE_POLICY_WEBHOOKS_REVIEW_H
#define VIGIL_KUBE_POLICY_WEBHOOKS_REVIEW_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "kube/types/status.h"

struct kube_user_info;

enum kube_webhook_version { KUBE_REVIEW_V1, KUBE_REVIEW_V1BETA1 };

enum {
    KUBE_WEBHOOK_REVIEW_BYTES_MAX = 8 << 20, /* an answer as JSON */
    KUBE_WEBHOOK_YAML_BYTES_MAX = 256 << 10, /* an answer as YAML */
    /* Further warnings, and what is longer of one, would not be sent to the client in any case. */
    KUBE_WEBHOOK_WARNINGS_MAX = 4096,
    KUBE_WEBHOOK_WARNING_BYTES_MAX = 4 * 4096 + 4,
};

/* A kind, or a resource: its plural is the name then. */
struct kube_webhook_kind {
    struct slice group, version, name;
};

/* The request to a webhook. Everything is borrowed. */
struct kube_webhook_review {
    enum kube_webhook_version version;
    struct slice uid; /* another one for each call */
    /* As the webhook's rule has matched, and as the client has requested. */
    struct kube_webhook_kind kind, resource, request_kind, request_resource;
    struct slice subresource, request_subresource;
    struct slice name, namespace;
    struct slice operation;            /* "CREATE", … */
    const struct kube_user_info *user; /* NULL: written as {} */
    struct slice object, old_object;   /* JSON; empty: null */
    struct slice options;              /* JSON; empty: null */
    bool dry_run;
};

/* ST_NOMEM. */
MUST_CHECK
enum status kube_webhook_review_write(struct buf *to, const struct kube_webhook_review *review);

/* The answer of a webhook. In the arena. */
struct kube_webhook_verdict {
    bool allowed;
    /* Decoded; empty: none, or the webhook is a validating one. If the request is allowed, it is
     * null or a list of objects and null. */
    struct slice patch;
    struct slice patch_type; /* with a patch; "JSONPatch" if an allowed request has operations */
    const struct slice *warnings; /* none of them is empty */
    size_t warning_count;
    bool has_annotations; /* for the audit log, which this server does not have */
    struct slice result;  /* if it is denied, response.status as JSON; empty: none */
};

/* ST_OK: there is a verdict. ST_MALFORMED, ST_LIMIT: there is none, and `error` is the reason as in
 * `failed calling webhook "NAME": REASON`: "failed to call webhook: no kind …" or "received invalid
 * webhook response: …", "received undecodable patch in webhook response: …". ST_NOMEM. */
MUST_CHECK
enum status kube_webhook_verdict_read(struct arena *arena, struct slice answer,
                                      enum kube_webhook_version version, struct slice uid,
                                      bool is_mutating, struct kube_webhook_verdict *ret_verdict,
                                      struct buf *error);

/* The refusal that a denied request is answered with: `admission webhook "NAME" denied the request:
 * …`, with the code, the reason and the details of the verdict. In the arena. Returns false. */
bool kube_webhook_refuse(struct arena *arena, struct slice webhook,
                         const struct kube_webhook_verdict *verdict, struct kube_status *status);

#endif
