/*
 * What a webhook has answered: its code, what its header says, and its body as it arrives, which is
 * limited. A body that was compressed with gzip is decompressed in pieces, so that no turn is long.
 *
 *     head ─► add … add ─► unpack … unpack ─► fault: an error, or the body is the answer
 *
 * Embedded in a call's attempt, on its thread.
 */
#ifndef VIGIL_KUBE_WEBHOOK_ANSWER_H
#define VIGIL_KUBE_WEBHOOK_ANSWER_H

#include "base/buf.h"
#include "wire/http/field.h"

struct account;
struct gunzip_stream;

enum {
    KUBE_WEBHOOK_ANSWER_BYTES_MAX = 8 << 20, /* compressed or not */
    KUBE_WEBHOOK_ANSWER_TYPE_BYTES = 128,
    KUBE_WEBHOOK_ANSWER_PLACE_BYTES = 256,
};

struct kube_webhook_answer {
    unsigned code; /* 0: nothing has arrived */
    bool is_packed;
    bool may_repeat; /* 429 or 5xx, with a Retry-After of */
    int64_t repeat_s;
    char type[KUBE_WEBHOOK_ANSWER_TYPE_BYTES];   /* Content-Type; cut */
    char place[KUBE_WEBHOOK_ANSWER_PLACE_BYTES]; /* Location; cut */
    struct account *account;                     /* borrowed; may be NULL */
    struct buf body;                             /* its capacity is charged to the account */
    struct buf packed;                           /* the same; as it was received */
    struct gunzip_stream *gunzip;                /* owned */
};

void kube_webhook_answer_head(struct kube_webhook_answer *answer, unsigned code,
                              const struct http_field *fields, size_t count);
/* ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status kube_webhook_answer_add(struct kube_webhook_answer *answer, struct slice bytes);
/* When the body has ended. ST_OK: it is complete. ST_AGAIN: to be called again in the next turn.
 * ST_LIMIT, ST_NOMEM; ST_MALFORMED, with Go's words. */
MUST_CHECK
enum status kube_webhook_answer_unpack(struct kube_webhook_answer *answer, const char **ret_reason);

/* Appends the error of client-go for it. False: it is the answer to the call, and there is
 * no error. */
bool kube_webhook_answer_fault(const struct kube_webhook_answer *answer, struct buf *to);

/* For another answer to the same call. */
void kube_webhook_answer_reset(struct kube_webhook_answer *answer);

#endif
