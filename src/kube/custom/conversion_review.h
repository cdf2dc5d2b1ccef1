/*
 * The ConversionReview that a webhook for custom resources gets, and its answer with Kubernetes'
 * checks and texts. One question may have many objects; the answer has them in the same
 * order.
 *
 *     begin ─► add … add ─► end ─► POST ─► read ─► conversion_check of each object
 *
 * Pure functions over bytes of the caller; on any thread.
 */
#ifndef VIGIL_KUBE_CUSTOM_CONVERSION_REVIEW_H
#define VIGIL_KUBE_CUSTOM_CONVERSION_REVIEW_H

#include "codec/json/tree.h"

/* What a conversion ends in; the labels of Kubernetes' metric are in conversion_failure_name. */
enum conversion_failure {
    CONVERSION_FINE,
    CONVERSION_CALL_FAILED,
    CONVERSION_MALFORMED, /* the answer is not one to this question, or says that it has failed */
    CONVERSION_PARTIAL,   /* it has another number of objects */
    CONVERSION_INVALID_OBJECT,
    CONVERSION_FAILURES
};

/* "conversion_webhook_call_failure"; "" of a conversion that has succeeded. */
const char *conversion_failure_name(enum conversion_failure failure);

struct conversion_review {
    const char *version;      /* "v1", or "v1beta1", whose answers have fewer checks */
    struct slice uid;         /* printable ASCII without quotes, as the next */
    struct slice api_version; /* the desired one: "example.com/v2" */
};

/* Appends "example.com/v1, Kind=Widget", as Go prints it. */
MUST_CHECK
enum status conversion_print_kind(struct slice api_version, struct slice kind, struct buf *to);

/* The first of spec.conversion.webhook.conversionReviewVersions that this server knows. NULL: there
 * is none. */
const char *conversion_review_version(const struct json_node *versions);

/* Append the question to `to`, with objects as JSON. */
MUST_CHECK
enum status conversion_review_begin(const struct conversion_review *review, struct buf *to);
MUST_CHECK
enum status conversion_review_add(struct slice object, bool first, struct buf *to);
MUST_CHECK
enum status conversion_review_end(struct buf *to);

/*
 * Reads the answer, which the tree borrows. ST_OK: *ret_objects is an array of `count` items.
 * ST_INVALID: `why` gets the text behind "conversion webhook for KIND ", and *ret_failure says what
 * it is. ST_NOMEM.
 */
MUST_CHECK
enum status conversion_review_read(struct arena *arena, const struct conversion_review *review,
                                   struct slice answer, size_t count,
                                   struct json_node **ret_objects, struct buf *why,
                                   enum conversion_failure *ret_failure);

#endif
