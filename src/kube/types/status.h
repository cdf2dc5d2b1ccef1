/*
 * A failure in the form of Kubernetes: an HTTP code and a Status object with reason, message and
 * details, word for word. It is filled where the error is found, and sent by the handler of the
 * request.
 */
#ifndef VIGIL_KUBE_TYPES_STATUS_H
#define VIGIL_KUBE_TYPES_STATUS_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"

/* The reasons of apimachinery; status.c has their HTTP codes. */
enum kube_reason {
    KUBE_OK,
    KUBE_BAD_REQUEST,
    KUBE_UNAUTHORIZED,
    KUBE_FORBIDDEN,
    KUBE_NOT_FOUND,
    KUBE_METHOD_NOT_ALLOWED,
    KUBE_NOT_ACCEPTABLE,
    KUBE_ALREADY_EXISTS,
    KUBE_CONFLICT,
    KUBE_GONE,
    KUBE_EXPIRED,
    KUBE_TOO_LARGE, /* RequestEntityTooLarge */
    KUBE_UNSUPPORTED_MEDIA_TYPE,
    KUBE_INVALID,
    KUBE_TOO_MANY_REQUESTS,
    KUBE_INTERNAL_ERROR,
    KUBE_SERVICE_UNAVAILABLE,
    KUBE_TIMEOUT, /* 504 */
    KUBE_STORAGE_READ_ERROR,
    KUBE_UNKNOWN, /* 500 without a reason */
};

enum { KUBE_MESSAGE_BYTES = 1024, KUBE_CAUSES_MAX = 4 };

struct kube_cause {
    const char *reason; /* "FieldValueInvalid" */
    char message[640];
    char field[128];
};

/* A further cause, in a list (kube/types/field_errors.h). */
struct kube_field_error {
    struct kube_field_error *next;
    const char *reason;
    struct slice field, message;
};

/* A zeroed struct means success. */
struct kube_status {
    enum kube_reason reason;
    unsigned code; /* 0: that of the reason */
    char message[KUBE_MESSAGE_BYTES];
    struct slice name, group, kind, uid; /* details; borrowed */
    bool bare;                           /* details are present but empty */
    struct kube_cause causes[KUBE_CAUSES_MAX];
    size_t cause_count;
    const struct kube_field_error *errors; /* further causes; borrowed */
    struct slice long_message;             /* in place of message; borrowed */
    struct slice whole;                    /* the Status as JSON, made elsewhere; borrowed */
    unsigned retry_after_s;                /* 0: no Retry-After header */
    struct slice continue_token;           /* metadata.continue of an expired list; borrowed */
};

unsigned kube_status_code(const struct kube_status *status);
/* Whether an HTTP code means that there was no memory, for this request or for the server. */
bool kube_code_is_no_memory(unsigned code);

/*
 * Each function fills the status and returns false, so that a check can end with it. Plural, group
 * and name become the details and are borrowed.
 */
bool kube_fail(struct kube_status *status, enum kube_reason reason, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The same with empty details, for requests to unknown paths. */
bool kube_fail_bare(struct kube_status *status, enum kube_reason reason, const char *text);
bool kube_fail_not_found(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name);
bool kube_fail_exists(struct kube_status *status, struct slice group, struct slice plural,
                      struct slice name);
/* why: NULL means that the object has been modified. */
bool kube_fail_conflict(struct kube_status *status, struct slice group, struct slice plural,
                        struct slice name, const char *why);
bool kube_fail_forbidden(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name, const char *why);
/* The path does not allow the method. */
bool kube_fail_not_allowed(struct kube_status *status);
/* The requested revision has not been reached, even after waiting. */
bool kube_fail_future(struct kube_status *status, int64_t requested, int64_t current);
/* A watch from a revision whose history is compacted. */
bool kube_fail_expired(struct kube_status *status, int64_t requested, int64_t oldest);
/* Called after kube_status_cause: `Pod "A" is invalid: …`, with the text of all causes. */
bool kube_fail_invalid(struct kube_status *status, struct slice group, struct slice kind,
                       struct slice name);
/* The body of a request is longer than this. */
bool kube_fail_too_long(struct kube_status *status, int limit);
/* A stored value is not a JSON object. */
bool kube_fail_stored(struct kube_status *status);
/* Nothing was done: 429, and the client may try again after a second. */
bool kube_fail_later(struct kube_status *status, struct slice text);
/* Translates the error of an engine operation. */
bool kube_fail_engine(struct kube_status *status, enum status engine);
/* Adds one error of an invalid object. More than KUBE_CAUSES_MAX are dropped. */
void kube_status_cause(struct kube_status *status, const char *reason, const char *field,
                       const char *message);

/* {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",…} */
MUST_CHECK
enum status kube_status_write(const struct kube_status *status, struct buf *to);
/* {"type":"ERROR","object":…}\n */
MUST_CHECK
enum status kube_status_write_event(const struct kube_status *status, struct buf *to);

#endif
