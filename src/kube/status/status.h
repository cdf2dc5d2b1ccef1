/*
 * What went wrong, as Kubernetes tells it: an HTTP code and a Status object with reason, message
 * and details, word for word. Made where the fault is found, sent by whoever answers.
 */
#ifndef VIGIL_KUBE_STATUS_STATUS_H
#define VIGIL_KUBE_STATUS_STATUS_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"

/* The reasons of apimachinery, with their codes in status.c. */
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

/* A further cause, one of a list (kube/status/field_errors.h). */
struct kube_field_error {
    struct kube_field_error *next;
    const char *reason;
    struct slice field, message;
};

/* A zeroed one is success. */
struct kube_status {
    enum kube_reason reason;
    char message[KUBE_MESSAGE_BYTES];
    struct slice name, group, kind, uid; /* details; borrowed */
    bool bare;                           /* details are there, but empty */
    struct kube_cause causes[KUBE_CAUSES_MAX];
    size_t cause_count;
    const struct kube_field_error *errors; /* further causes; borrowed */
    struct slice long_message;             /* in place of message; borrowed */
    unsigned retry_after_s;                /* 0: not said */
    struct slice continue_token;           /* metadata.continue of an expired list; borrowed */
};

unsigned kube_status_code(const struct kube_status *status);
/* The codes that are told when there is no memory, for one request or for all. */
bool kube_code_tells_no_memory(unsigned code);

/*
 * Each fills it and returns false, so that a check can end with it. Plural, group and name are
 * those of the details and borrowed.
 */
bool kube_fail(struct kube_status *status, enum kube_reason reason, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The same with empty details: what is said of requests that lead nowhere. */
bool kube_fail_bare(struct kube_status *status, enum kube_reason reason, const char *text);
bool kube_fail_not_found(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name);
bool kube_fail_exists(struct kube_status *status, struct slice group, struct slice plural,
                      struct slice name);
/* why NULL: the object has been modified. */
bool kube_fail_conflict(struct kube_status *status, struct slice group, struct slice plural,
                        struct slice name, const char *why);
/* A revision that is not there yet, after waiting for it. */
bool kube_fail_future(struct kube_status *status, int64_t asked, int64_t current);
/* A watch from a revision whose history is gone. */
bool kube_fail_expired(struct kube_status *status, int64_t asked, int64_t oldest);
/* After kube_status_cause told what is wrong: `Pod "A" is invalid: …`, from all causes. */
bool kube_fail_invalid(struct kube_status *status, struct slice group, struct slice kind,
                       struct slice name);
/* An operation of the engine failed. */
bool kube_fail_engine(struct kube_status *status, enum status engine);
/* One of the things that are wrong with an invalid object. More than KUBE_CAUSES_MAX are dropped.
 */
void kube_status_cause(struct kube_status *status, const char *reason, const char *field,
                       const char *message);

/* {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",…} */
MUST_CHECK
enum status kube_status_write(const struct kube_status *status, struct buf *to);
/* {"type":"ERROR","object":…}\n */
MUST_CHECK
enum status kube_status_write_event(const struct kube_status *status, struct buf *to);

#endif
