/*
 * Kubernetes' protobuf as it travels. An object is in an envelope, which has its kind:
 *
 *     "k8s\0" Unknown{ typeMeta = 1 { apiVersion = 1, kind = 2 }, raw = 2: the message }
 *
 * JSON cannot begin with this, so that functions which are given an object recognise its format.
 * An event of a watch is a WatchEvent{ type = 1, object = 2 { raw = 1: an envelope } } without an
 * envelope of its own.
 */
#ifndef VIGIL_KUBECLIENT_DATA_PROTOBUF_H
#define VIGIL_KUBECLIENT_DATA_PROTOBUF_H

#include "base/buf.h"

#include <vigil/kube/protobuf.h>

/* The numbers of fields that are read here. */
enum {
    TYPE_META_API_VERSION = 1,
    TYPE_META_KIND = 2,
    UNKNOWN_TYPE_META = 1,
    UNKNOWN_RAW = 2,
    UNKNOWN_ENCODING = 3,
    UNKNOWN_CONTENT_TYPE = 4,
    OBJECT_METADATA = 1, /* field of every kind that is an object */
    OBJECT_META_NAME = 1,
    OBJECT_META_NAMESPACE = 3,
    OBJECT_META_UID = 5,
    OBJECT_META_VERSION = 6,
    LIST_METADATA = 1, /* field of every kind that is a list */
    LIST_ITEMS = 2,
    LIST_META_VERSION = 2,
    LIST_META_CONTINUE = 3,
    LIST_META_REMAINING = 4,
};

/* Refers to the bytes it was read from. */
struct envelope {
    struct slice api_version, kind; /* "apps/v1", "Deployment" */
    struct slice message;
};

/* Whether these bytes are meant to be an envelope, and not JSON. */
static inline bool envelope_begins(struct slice bytes)
{
    return slice_has_prefix(bytes, SLICE_LITERAL("k8s\0"));
}

/* False: malformed, or the message is compressed or something else than protobuf. */
MUST_CHECK
bool envelope_read(struct slice bytes, struct envelope *ret_envelope);

/* The content type of a message that an envelope may have. */
bool envelope_is_protobuf(struct slice content_type);

/* Appends an envelope up to its message, whose bytes must follow. */
MUST_CHECK
enum status envelope_append_head(struct buf *to, struct slice api_version, struct slice kind,
                                 size_t message_bytes);

/* The first field with this number if it has bytes, else nothing. */
struct slice protobuf_bytes(struct slice message, uint32_t field);

#endif
