/*
 * The next part of an answer that is pulled (http_set_source), for lists and watches: bytes that
 * were made, then an object from the store, then what closes it. Owns nothing once it is sent.
 *
 *     made │ head │ object with its resourceVersion │ tail
 */
#ifndef VIGIL_KUBE_READ_OBJECT_WRITER_H
#define VIGIL_KUBE_READ_OBJECT_WRITER_H

#include "base/buf.h"
#include "kube/object/object.h"

struct kube_out {
    struct buf made; /* freed when it has been sent */
    struct slice head, tail;
    struct kube_object object; /* in the store; json empty: none */
    int64_t revision;
    bool item;     /* as an item of a list: without kind and apiVersion */
    size_t at;     /* bytes that were sent */
    size_t length; /* of all parts; 0: nothing is to be sent */
};

void kube_out_fini(struct kube_out *out);

/* Sends the bytes in out->made. */
void kube_out_set_made(struct kube_out *out);
/* head and tail are borrowed until everything is sent, and so is the object. */
void kube_out_set_object(struct kube_out *out, struct slice head, const struct kube_object *object,
                         int64_t revision, bool item, struct slice tail);

/* Bytes that are borrowed until they are sent. */
void kube_out_set_shared(struct kube_out *out, struct slice bytes);

static inline bool kube_out_empty(const struct kube_out *out)
{
    return out->length == 0;
}

/* The bytes are in the store or shared, and must be found again in each turn. */
static inline bool kube_out_borrows(const struct kube_out *out)
{
    return out->length > out->made.len;
}

/* Copies the next bytes; returns how many. */
size_t kube_out_fill(struct kube_out *out, uint8_t *dst, size_t room);

#endif
