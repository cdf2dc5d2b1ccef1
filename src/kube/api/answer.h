/*
 * The body of an answer, as the request wants it: in its format, indented, packed. Made where the
 * work is done (work.h), sent by the call.
 */
#ifndef VIGIL_KUBE_API_ANSWER_H
#define VIGIL_KUBE_API_ANSWER_H

#include "base/buf.h"
#include "kube/api/accept.h"

struct kube_call;

/* An answer that has been made. */
struct kube_answer {
    unsigned code;
    enum kube_format format;
    bool packed;
    struct slice body; /* in `made`, or as it was given */
    struct buf made;
};

/* From JSON; what cannot be said in the format that was asked for is said in JSON. ST_NOMEM. */
MUST_CHECK
enum status kube_answer_make(struct kube_call *call, struct slice json, struct kube_answer *answer);

/* How many of an object's bytes are work until it is answered: none, where it is answered as it is
 * stored. */
size_t kube_call_answer_work(const struct kube_call *call, size_t bytes, int64_t revision);

/* The same of JSON that has been made already. */
size_t kube_call_format_work(const struct kube_call *call, size_t bytes);

#endif
