/*
 * What a webhook may change in an object that it converts: everything but its identity. An object
 * with another version, kind, name, namespace or uid is refused, with Kubernetes' texts; all other
 * metadata is restored from the original, except for labels and annotations, which are validated if
 * they were changed. On any thread.
 */
#ifndef VIGIL_KUBE_CUSTOM_CONVERSION_CHECK_H
#define VIGIL_KUBE_CUSTOM_CONVERSION_CHECK_H

#include "codec/json/tree.h"

/* The object before its conversion. */
struct conversion_original {
    struct slice api_version, kind;
    const struct json_node *metadata; /* NULL: it has none */
};

/*
 * Checks an object of an answer and restores its metadata. ST_INVALID: `why` gets the whole text of
 * the error. ST_NOMEM.
 */
MUST_CHECK
enum status conversion_check(struct arena *arena, const struct conversion_original *original,
                             struct slice api_version, struct json_node *converted,
                             struct buf *why);

#endif
