/*
 * The next part of an answer that is pulled (http_set_source), for lists and watches: bytes that
 * were made, then an object from the store, then what closes it. Owns nothing once it is sent.
 *
 *     made │ head │ object with its resourceVersion │ tail
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_OBJECT_WRITER_H
#define VIGIL_KUBE_HANDLERS_READ_OBJECT_WRITER_H

#include "base/buf.h"
#include "kube/types/object/object.h"

struct kube_object_writer {
    struct buf made; /* freed when it has been sent */
    struct slice head, tail;
    struct kube_object object; /* in the store; json empty: none */
    int64_t revision;
    bool item;     /* as an item of a list: without kind and apiVersion */
    size_t at;     /* bytes that were sent */
    size_t length; /* length of all parts; 0: nothing is to be sent */
};

void kube_object_writer_fini(struct kube_object_writer *writer);

/* Sends the bytes in writer->made. */
void kube_object_writer_set_made(struct kube_object_writer *writer);
/* head and tail are borrowed until everything is sent, and so is the object. */
void kube_object_writer_set_object(struct kube_object_writer *writer, struct slice head,
                                   const struct kube_object *object, int64_t revision, bool item,
                                   struct slice tail);

/* Bytes that are borrowed until they are sent. */
void kube_object_writer_set_shared(struct kube_object_writer *writer, struct slice bytes);

static inline bool kube_object_writer_empty(const struct kube_object_writer *writer)
{
    return writer->length == 0;
}

/* Copies the next bytes; returns how many. */
size_t kube_object_writer_fill(struct kube_object_writer *writer, uint8_t *dst, size_t room);

#endif
