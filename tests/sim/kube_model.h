/*
 * What the Kubernetes API has answered, and what informers have seen, compared with the history as
 * soon as it has the revision in question. Objects are ConfigMaps of one namespace.
 */
#ifndef VIGIL_TESTS_SIM_KUBE_MODEL_H
#define VIGIL_TESTS_SIM_KUBE_MODEL_H

#include "history.h"

#define KUBE_ROOT "/registry/configmaps/default/"
#define KUBE_ROOT_END "/registry/configmaps/default0"

enum kube_call_kind {
    KUBE_CREATE,
    KUBE_UPDATE,
    KUBE_PATCH,
    KUBE_GET,
    KUBE_DELETE,
    KUBE_INFORMED, /* no call: an informer has shown the object */
};

struct kube_answer {
    enum kube_call_kind kind;
    char key[KEY_BYTES];
    int64_t floor;     /* the newest revision that anybody had seen when it began */
    int64_t condition; /* the resourceVersion that the request has; 0: none */
    int64_t revision;  /* revision of the object in the answer; 0: there is none */
    int code;          /* HTTP status, if it was refused; otherwise 0 */
};

void kube_model_begin(void);
void kube_model_add(const struct kube_answer *answer);
void kube_model_check_known(void);
/* The history is complete: what was refused, or deleted, had a reason. */
void kube_model_finish(void);

#endif
