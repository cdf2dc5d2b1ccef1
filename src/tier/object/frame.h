/*
 * What surrounds objects in answers: the frames of events, bookmarks, and the heads and tails of
 * lists, in each encoding.
 *
 *     JSON        {"type":"ADDED","object": … }\n          {"kind":"PodList",…,"items":[ … , … ]}\n
 *     protobuf    length, WatchEvent{type, object{raw … }}  "k8s\0" Unknown{…, raw PodList{metadata, items … }}
 */
#ifndef VIGIL_TIER_OBJECT_FRAME_H
#define VIGIL_TIER_OBJECT_FRAME_H

#include "base/buf.h"
#include "tier/mirror/name.h"

#include <stdbool.h>

enum tier_event { TIER_EVENT_NONE, TIER_EVENT_ADDED, TIER_EVENT_MODIFIED, TIER_EVENT_DELETED };

/* The bytes before and after an object in its event. *head has room for them. */
enum { TIER_EVENT_HEAD_BYTES = 48 };
size_t tier_event_head(enum tier_encoding encoding, enum tier_event event, size_t object_bytes,
                       uint8_t head[TIER_EVENT_HEAD_BYTES]);
struct slice tier_event_tail(enum tier_encoding encoding);

/* What an answer says about its resource. */
struct tier_kind {
    const char *kind, *list_kind, *api_version;
    bool has_kinds; /* items of lists in JSON have kind and apiVersion */
};

/* Appends a BOOKMARK event. */
MUST_CHECK
enum status tier_append_bookmark(enum tier_encoding encoding, const struct tier_kind *kind,
                                 uint64_t version, bool ends_initial, struct buf *to);

struct tier_list_meta {
    uint64_t version;
    struct slice continue_token; /* empty: the list is complete */
    int64_t remaining;           /* -1: unknown */
};

/* "metadata":{…}, in JSON. */
MUST_CHECK
enum status tier_append_list_meta(const struct tier_list_meta *meta, struct buf *to);
/* Everything before the first item. items_bytes: protobuf's items with their tags and lengths. */
MUST_CHECK
enum status tier_append_list_head(enum tier_encoding encoding, const struct tier_kind *kind,
                                  const struct tier_list_meta *meta, size_t items_bytes,
                                  struct buf *to);
struct slice tier_list_tail(enum tier_encoding encoding);

/* Protobuf: how many bytes an item takes in a list, and what precedes its message. */
size_t tier_list_item_bytes(size_t message_bytes);
enum { TIER_ITEM_HEAD_BYTES = 16 };
size_t tier_list_item_head(size_t message_bytes, uint8_t head[TIER_ITEM_HEAD_BYTES]);

/* "application/json", or of watches "application/vnd.kubernetes.protobuf;stream=watch". */
struct slice tier_content_type(enum tier_encoding encoding, bool watch);

#endif
