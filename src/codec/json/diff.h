/*
 * The differences between two JSON values, as a list of paths whose values were added, removed or
 * changed. For people: `vigil kube watch` shows them.
 *
 *     spec.replicas
 *     spec.containers[name=web].image
 *     metadata.labels['app.kubernetes.io/name']
 *
 * Items of arrays are matched by their "name", "type" or "key" if every item of both arrays has one
 * and they are unique, otherwise by their place. Any thread.
 */
#ifndef VIGIL_CODEC_JSON_DIFF_H
#define VIGIL_CODEC_JSON_DIFF_H

#include "codec/json/tree.h"

/* One difference. Borrowed. */
struct json_difference {
    struct slice path;
    const struct json_node *before; /* NULL: it was added */
    const struct json_node *after;  /* NULL: it was removed */
};

struct json_diff {
    void (*fn)(void *ctx, const struct json_difference *difference);
    void *ctx;
    struct arena *arena; /* borrowed: texts without their escapes */
    struct buf path;     /* path of the values that are being compared */
};

/* Calls fn for every difference, in the order of `after` and then of what was removed. ST_NOMEM. */
MUST_CHECK
enum status json_diff(struct arena *arena, const struct json_node *before,
                      const struct json_node *after,
                      void (*fn)(void *ctx, const struct json_difference *difference), void *ctx);

#endif
