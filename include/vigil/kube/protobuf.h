/*
 * A lazy view of protobuf, for objects that a server has sent in Kubernetes' protobuf: finds a
 * field in a message without decoding the rest of it, and without memory. It is the counterpart of
 * vigil/kube/json.h; the numbers of fields are those in the .proto files of Kubernetes.
 *
 *     vigil_bytes message = vigil_kube_object_protobuf(pod);
 *     vigil_pb_value phase;
 *     if (vigil_pb_find(message, "3.1", &phase) &&
 *         vigil_pb_is(phase, "Running"))
 *         …
 *
 * A path names fields from the outside to the inside. In a pod these are metadata.name,
 * spec.containers[0].name and a label, which is an entry of a map:
 *
 *     1.1
 *     2.2[0].1
 *     1.11['app.kubernetes.io/name']
 *
 * The message may come from anybody: what is malformed has no fields. Only the part of a message up
 * to the field that is found is examined; of a field that occurs several times the first one is
 * found unless the path has an index. Groups, which Kubernetes does not use, are malformed.
 *
 * Threads: Every function may be called on any thread.
 */
#ifndef VIGIL_KUBE_PROTOBUF_H
#define VIGIL_KUBE_PROTOBUF_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the value of a field is encoded. */
typedef enum vigil_pb_type {
    VIGIL_PB_NONE,
    VIGIL_PB_NUMBER, /* an integer, a boolean or an enumeration */
    VIGIL_PB_FIXED,  /* the bits of a number of four or eight bytes: fixed64, double, float … */
    VIGIL_PB_BYTES   /* a text, bytes, a message, or packed numbers */
} vigil_pb_type;

/* The value of a field. */
typedef struct vigil_pb_value {
    int type;          /* a vigil_pb_type */
    uint64_t number;   /* unless it is VIGIL_PB_BYTES; an int64 is this, converted */
    vigil_bytes bytes; /* VIGIL_PB_BYTES: a part of the message */
} vigil_pb_value;

/* Returns 1 if the message has a field at the path, otherwise 0. An empty path is the whole
 * message. */
VIGIL_API int vigil_pb_find(vigil_bytes message, const char *path, vigil_pb_value *ret_value);

/* Whether the value is exactly this text. */
VIGIL_API int vigil_pb_is(vigil_pb_value value, const char *text);

/*
 * The fields of a message, in their order:
 *
 *     vigil_pb_iterator iterator = vigil_pb_iterate(spec);
 *     while (vigil_pb_next(&iterator, &field, &value))
 *         …
 */
typedef struct vigil_pb_iterator {
    const unsigned char *at, *end; /* private */
    int malformed;                 /* 1 after vigil_pb_next has returned 0 for this reason */
} vigil_pb_iterator;

/* Begins before the first field. */
VIGIL_API vigil_pb_iterator vigil_pb_iterate(vigil_bytes message);

/* Returns 1 and the next field, or 0 at the end and where the message is malformed. */
VIGIL_API int vigil_pb_next(vigil_pb_iterator *iterator, uint32_t *ret_field,
                            vigil_pb_value *ret_value);

#ifdef __cplusplus
}
#endif

#endif
