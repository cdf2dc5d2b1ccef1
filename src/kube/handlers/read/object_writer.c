#include "kube/handlers/read/object_writer.h"

void kube_object_writer_fini(struct kube_object_writer *writer)
{
    buf_fini(&writer->made);
    *writer = (struct kube_object_writer){0};
}

void kube_object_writer_set_made(struct kube_object_writer *writer)
{
    assert(writer->length == 0);
    writer->length = writer->made.len;
}

void kube_object_writer_set_object(struct kube_object_writer *writer, struct slice head,
                                   const struct kube_object *object, int64_t revision, bool item,
                                   struct slice tail)
{
    assert(writer->length == 0);
    writer->head = head;
    writer->tail = tail;
    writer->object = *object;
    writer->revision = revision;
    writer->item = item;
    writer->length =
        writer->made.len + head.len + kube_object_size(object, revision, item) + tail.len;
}

void kube_object_writer_set_shared(struct kube_object_writer *writer, struct slice bytes)
{
    assert(writer->length == 0);
    writer->head = bytes;
    writer->length = bytes.len;
}

/* Copies the bytes from *from on, if it is within them; *from becomes relative to their end. */
static size_t copy_part(struct slice bytes, size_t *from, uint8_t *dst, size_t room)
{
    size_t skip = size_min(*from, bytes.len);
    size_t n = size_min(bytes.len - skip, room);
    slice_copy(dst, slice_sub(bytes, skip, n));
    *from -= skip;
    return n;
}

size_t kube_object_writer_fill(struct kube_object_writer *writer, uint8_t *dst, size_t room)
{
    size_t from = writer->at;
    size_t n = copy_part(buf_slice(&writer->made), &from, dst, room);
    n += copy_part(writer->head, &from, dst + n, room - n);
    if (writer->object.json.len) {
        size_t size = writer->length - writer->made.len - writer->head.len - writer->tail.len;
        if (from < size)
            n += kube_object_copy(&writer->object, writer->revision, writer->item, from, dst + n,
                                  room - n);
        from -= size_min(from, size);
    }
    n += copy_part(writer->tail, &from, dst + n, room - n);
    writer->at += n;
    if (writer->at == writer->length)
        kube_object_writer_fini(writer);
    return n;
}
