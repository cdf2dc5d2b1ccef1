#include "kube/read/object_writer.h"

void kube_out_fini(struct kube_out *out)
{
    buf_fini(&out->made);
    *out = (struct kube_out){0};
}

void kube_out_set_made(struct kube_out *out)
{
    assert(out->length == 0);
    out->length = out->made.len;
}

void kube_out_set_object(struct kube_out *out, struct slice head, const struct kube_object *object,
                         int64_t revision, bool item, struct slice tail)
{
    assert(out->length == 0);
    out->head = head;
    out->tail = tail;
    out->object = *object;
    out->revision = revision;
    out->item = item;
    out->length = out->made.len + head.len + kube_object_size(object, revision, item) + tail.len;
}

void kube_out_set_shared(struct kube_out *out, struct slice bytes)
{
    assert(out->length == 0);
    out->head = bytes;
    out->length = bytes.len;
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

size_t kube_out_fill(struct kube_out *out, uint8_t *dst, size_t room)
{
    size_t from = out->at;
    size_t n = copy_part(buf_slice(&out->made), &from, dst, room);
    n += copy_part(out->head, &from, dst + n, room - n);
    if (out->object.json.len) {
        size_t size = out->length - out->made.len - out->head.len - out->tail.len;
        if (from < size)
            n += kube_object_copy(&out->object, out->revision, out->item, from, dst + n, room - n);
        from -= size_min(from, size);
    }
    n += copy_part(out->tail, &from, dst + n, room - n);
    out->at += n;
    if (out->at == out->length)
        kube_out_fini(out);
    return n;
}
