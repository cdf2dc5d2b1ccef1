/*
 * A Kubernetes object as it is stored: JSON bytes, looked at without being taken apart. What our
 * own face has written begins with kind, apiVersion and metadata, so a look ends after some hundred
 * bytes; foreign JSON in any order is read to its end.
 *
 *     {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",…,"labels":{…}},"spec":…}
 *                                                ^ at_version: where a resourceVersion is put in
 *
 * The stored bytes have no resourceVersion: it is the revision of their key.
 */
#ifndef VIGIL_KUBE_OBJECT_OBJECT_H
#define VIGIL_KUBE_OBJECT_OBJECT_H

#include "base/slice.h"
#include "base/status.h"

/* The field of an object that was looked for last. */
struct kube_field_memo {
    bool known, found;
    uint8_t path_len;
    uint8_t path[32]; /* a longer one is not kept */
    struct slice value;
};

/* Slices lie in the JSON: strings without their quotes, but with their escapes. */
struct kube_object {
    struct slice json;
    struct slice kind, api_version;
    struct slice metadata; /* with its braces */
    struct slice name, namespace, uid;
    struct slice labels; /* the object with its braces; empty when there is none */
    size_t at_version;   /* in json: behind the brace that opens metadata */
    size_t at_rest;      /* in json: where the first field after kind and apiVersion begins */
    bool leading;        /* kind and apiVersion stand first: at_rest leaves them out */
    bool metadata_empty; /* no comma after a resourceVersion put in */
    struct kube_field_memo *memo; /* NULL: no field is remembered. Borrowed, of this object alone */
};

/* Of a look at a stored value, converted or not: it is no object that can be shown. Every other
 * fault, such as no memory, says nothing about the value. */
static inline bool kube_is_undecodable(enum status status)
{
    return status == ST_MALFORMED || status == ST_LIMIT;
}

/* ST_MALFORMED: no JSON object, or one without metadata. */
MUST_CHECK
enum status kube_object_look(struct slice json, struct kube_object *ret_object);

/*
 * Only what sending it needs, for who will not select: of what our own face has written the first
 * bytes are enough, and metadata, name and labels are not filled in. ST_MALFORMED as above.
 */
MUST_CHECK
enum status kube_object_peek(struct slice json, struct kube_object *ret_object);

/*
 * The value at a path such as "spec.nodeName": a string without its quotes but with its escapes, a
 * number or a literal as it stands; json_inner_is compares it. False: there is none, or it is an
 * object or array.
 */
MUST_CHECK
bool kube_object_field(const struct kube_object *object, struct slice path,
                       struct slice *ret_value);

/*
 * The bytes for the wire: the stored ones with the resourceVersion put in. `item`: as an item of a
 * list, without kind and apiVersion.
 */
size_t kube_object_size(const struct kube_object *object, int64_t revision, bool item);
/* Copies [from, from + room) of them; returns how many. */
size_t kube_object_copy(const struct kube_object *object, int64_t revision, bool item, size_t from,
                        uint8_t *dst, size_t room);

#endif
