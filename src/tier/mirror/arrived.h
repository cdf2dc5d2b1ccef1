/* An object as it has arrived, in JSON or in an envelope of protobuf: what the mirror must know of
 * it. Only what leads there is examined. */
#ifndef VIGIL_TIER_MIRROR_ARRIVED_H
#define VIGIL_TIER_MIRROR_ARRIVED_H

#include "base/buf.h"

enum { ARRIVED_KEY_BYTES_MAX = 1024 }; /* longer than Kubernetes allows */

struct arrived {
    struct slice key; /* "namespace/name" or "name": in the buffer of the caller */
    uint64_t version;
    bool lacks_kind, lacks_api_version; /* JSON: items of lists of built-in kinds have neither */
};

/*
 * The buffer is used for the key, which is valid until it is used again. ST_MALFORMED: it has no
 * name, or is not an object. ST_INVALID: its resourceVersion is not a number. ST_LIMIT: the key is
 * too long. ST_NOMEM.
 */
MUST_CHECK
enum status arrived_read(struct slice object, struct buf *key, struct arrived *ret_arrived);

/* Kind and apiVersion of an object, empty if it has none, or with escapes. */
void arrived_read_kind(struct slice object, struct slice *ret_kind, struct slice *ret_api_version);

/* A resourceVersion. False: it is not a number of at most 18 digits, or 0. */
MUST_CHECK
bool arrived_read_version(struct slice text, uint64_t *ret_version);

#endif
