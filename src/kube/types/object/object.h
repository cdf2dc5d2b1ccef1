/*
 * A stored Kubernetes object: JSON bytes, of which only the needed parts are scanned, without
 * building a tree. Objects that this server has written begin with kind, apiVersion and metadata,
 * so a scan ends after about a hundred bytes; JSON in any other order is read to its end.
 *
 *     {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",…,"labels":{…}},"spec":…}
 *                                                ^ at_version: where resourceVersion is inserted
 *
 * The stored bytes have no resourceVersion: it is the revision of their key.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_OBJECT_H
#define VIGIL_KUBE_TYPES_OBJECT_OBJECT_H

#include "base/slice.h"
#include "base/status.h"

/* The field of an object that was read last. */
struct kube_field_memo {
    bool known, found;
    uint8_t path_len;
    uint8_t path[32]; /* longer paths are not cached */
    struct slice value;
};

/* Slices point into the JSON: strings without their quotes, but with their escapes. */
struct kube_object {
    struct slice json;
    struct slice kind, api_version;
    struct slice metadata; /* including its braces */
    struct slice name, namespace, uid;
    struct slice labels;          /* the object including its braces; empty if absent */
    size_t at_version;            /* offset in json, after the opening brace of metadata */
    size_t at_rest;               /* offset in json of the first field after kind and apiVersion */
    bool leading;                 /* kind and apiVersion come first, so at_rest skips them */
    bool metadata_empty;          /* the inserted resourceVersion is not followed by a comma */
    struct kube_field_memo *memo; /* NULL: no cache. Borrowed, for this object only */
};

/*
 * Whether a status means that a stored value cannot be shown as an object. Other errors, such as no
 * memory, say nothing about the value.
 */
static inline bool kube_is_undecodable(enum status status)
{
    return status == ST_MALFORMED || status == ST_LIMIT;
}

/* ST_MALFORMED: not a JSON object, or one without metadata. */
MUST_CHECK
enum status kube_object_parse(struct slice json, struct kube_object *ret_object);

/*
 * Scans only what is needed to send the object, for callers without selectors: if this server has
 * written it, the first bytes suffice, and metadata, name and labels are not filled in.
 * ST_MALFORMED as above.
 */
MUST_CHECK
enum status kube_object_parse_head(struct slice json, struct kube_object *ret_object);

/*
 * The value at a path such as "spec.nodeName": a string without its quotes but with its escapes, or
 * a number or literal as written; json_inner_is compares it. False: it is missing, or is an object
 * or array.
 */
MUST_CHECK
bool kube_object_field(const struct kube_object *object, struct slice path,
                       struct slice *ret_value);

/* Whether it is marked for deletion. Only a delete sets deletionTimestamp. */
bool kube_object_is_deleting(const struct kube_object *object);

/*
 * The size of the object as it is sent: the stored bytes with the resourceVersion inserted. `item`:
 * as an item of a list, without kind and apiVersion.
 */
size_t kube_object_size(const struct kube_object *object, int64_t revision, bool item);
/* Copies the bytes [from, from + room) of that form; returns how many there were. */
size_t kube_object_copy(const struct kube_object *object, int64_t revision, bool item, size_t from,
                        uint8_t *dst, size_t room);

#endif
