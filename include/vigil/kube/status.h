/*
 * Why a request to a Kubernetes API server has failed, or why a watch has ended: the fields of the
 * Status that the server sent.
 */
#ifndef VIGIL_KUBE_STATUS_H
#define VIGIL_KUBE_STATUS_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes of texts, with their final zeros, and the number of causes. */
enum { VIGIL_KUBE_REASON_BYTES = 64, VIGIL_KUBE_MESSAGE_BYTES = 512, VIGIL_KUBE_CAUSES_MAX = 8 };

/* One of several causes. Texts that do not fit are cut. */
typedef struct vigil_kube_cause {
    char reason[VIGIL_KUBE_REASON_BYTES]; /* "FieldValueInvalid" */
    char field[128];                      /* "spec.replicas"; "" if it is not about a field */
    char message[256];
} vigil_kube_cause;

/* Why a request has failed. Texts that do not fit are cut. */
typedef struct vigil_kube_status {
    int code;                               /* HTTP status: 404, 409, 410 … */
    int retry_after_s;                      /* when to try again; -1 if the server did not say */
    char reason[VIGIL_KUBE_REASON_BYTES];   /* "NotFound", "Conflict", "Expired" …; may be "" */
    char message[VIGIL_KUBE_MESSAGE_BYTES]; /* for people, in one line or several */
    size_t cause_count;                     /* at most VIGIL_KUBE_CAUSES_MAX; others are left out */
    vigil_kube_cause causes[VIGIL_KUBE_CAUSES_MAX];
} vigil_kube_status;

#ifdef __cplusplus
}
#endif

#endif
