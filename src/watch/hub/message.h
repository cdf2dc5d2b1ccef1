/*
 * A WatchResponse in its gRPC frame, as bytes. Watchers of the same keys with the same options
 * differ only in a small head; the events that follow are the same bytes for all of them.
 *
 *     00 len32 │ 0a header 10 id 18 created 20 canceled 28 compacted 32 reason 38 fragment │ 5a event…
 *     ╰─ the head ────────────────────────────────────────────────────────────────────────╯
 *
 *     event:  08 type  12 KeyValue  1a KeyValue   ── the history stores `12 len KeyValue` as it is
 */
#ifndef VIGIL_WATCH_HUB_MESSAGE_H
#define VIGIL_WATCH_HUB_MESSAGE_H

#include "watch/hub/options.h"

enum {
    MESSAGE_HEADER_BYTES_MAX = 2 + 4 * 11,
    MESSAGE_REASON_BYTES_MAX = 512, /* longer ones are cut */
    MESSAGE_HEAD_BYTES_MAX =
        5 + MESSAGE_HEADER_BYTES_MAX + 2 * 11 + 3 * 2 + 3 + MESSAGE_REASON_BYTES_MAX,
};

/* The encoded parts of a response header that never change. */
struct message_identity {
    uint8_t before[2 * 11], after[11]; /* the parts before and after the revision */
    uint8_t before_len, after_len;
};

void message_identity_init(struct message_identity *identity, const struct watch_identity *ids);

/* Field 1, the header, for a revision. */
struct message_header {
    int64_t revision; /* 0: not encoded */
    uint8_t bytes[MESSAGE_HEADER_BYTES_MAX];
    size_t len;
};

void message_header_make(struct message_header *header, const struct message_identity *identity,
                         int64_t revision);

struct message {
    int64_t watch_id;
    int64_t compact_revision;
    struct slice reason;
    bool created, canceled, fragment;
};

/* Writes the frame and head of a message with that many bytes of events. Returns the length. */
size_t message_head_write(uint8_t dst[MESSAGE_HEAD_BYTES_MAX], const struct message *message,
                          const struct message_header *header, size_t events_bytes);

/* The same for a plain response of events; separate because it is written a million times a second.
 */
size_t message_event_head_size(const struct message_header *header, int64_t watch_id);
uint8_t *message_event_head_write(uint8_t *dst, const struct message_header *header,
                                  int64_t watch_id, size_t events_bytes);

/* One event as field 11. prev: the result of watch_history_ops.prev, or empty. */
size_t message_event_size(const struct watch_event *event, struct slice prev);
uint8_t *message_event_write(uint8_t *dst, const struct watch_event *event, struct slice prev);

/* The bytes of an event before its KeyValue, and the tag of the previous KeyValue. */
enum { MESSAGE_EVENT_HEAD_BYTES_MAX = 1 + 10 + 2, MESSAGE_PREV_TAG = 0x1a };
size_t message_event_start(uint8_t dst[MESSAGE_EVENT_HEAD_BYTES_MAX],
                           const struct watch_event *event, struct slice prev);

#endif
