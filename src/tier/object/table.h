/*
 * Tables, which kubectl prints: rows that the printers of our own API make of objects in JSON. The
 * columns are those of our version of Kubernetes, so they are made only for a kube-apiserver of the
 * same one (tier/read/version.h).
 *
 *     list    {"kind":"Table",…,"metadata":{…},"columnDefinitions":[…],"rows":[ … , … ]}
 *     event   {"type":"ADDED","object":{"kind":"Table",… ,"rows":[ … ]}}
 */
#ifndef VIGIL_TIER_OBJECT_TABLE_H
#define VIGIL_TIER_OBJECT_TABLE_H

#include "kube/call/shape.h"
#include "tier/object/frame.h"

/* Everything before the first row of a list. */
MUST_CHECK
enum status tier_append_table_head(const struct kube_shaping *shaping,
                                   const struct tier_list_meta *meta, struct buf *to);
MUST_CHECK
enum status tier_append_row(const struct kube_shaping *shaping, struct slice json, struct buf *to);
/* An event with a Table of one row. columns: it is the first one of its watch. ST_MALFORMED: the
 * object has no version. */
MUST_CHECK
enum status tier_append_table_event(const struct kube_shaping *shaping, enum tier_event event,
                                    struct slice json, bool columns, struct buf *to);

#endif
