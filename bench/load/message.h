/*
 * The few protobuf messages a load needs, by hand: requests are written once into templates, of
 * responses only counts, revisions and values are looked at, in place.
 */
#ifndef VIGIL_LOAD_MESSAGE_H
#define VIGIL_LOAD_MESSAGE_H

#include "base/buf.h"

/* Each appends a whole message. Keys and values are copied as they are. */
MUST_CHECK
enum status bench_message_put(struct buf *out, struct slice key, struct slice value);
/* An empty range_end asks for the one key. */
MUST_CHECK
enum status bench_message_range(struct buf *out, struct slice key, struct slice range_end);
/* start_revision 0: from now. */
MUST_CHECK
enum status bench_message_watch(struct buf *out, struct slice key, struct slice range_end,
                                int64_t start_revision);

/* The range end that makes a range of all keys with the prefix; the last byte must not be 255. */
MUST_CHECK
enum status bench_message_prefix_end(struct slice prefix, struct buf *ret_end);

/* One field of a message; `bytes` points into the message. */
struct bench_field {
    uint32_t number;
    uint32_t wire_type;
    uint64_t value;     /* value of a varint */
    struct slice bytes; /* bytes of a length-delimited field */
};

/* Removes the next field from the front. ST_END at the end, ST_MALFORMED for other bytes. */
MUST_CHECK
enum status bench_message_next(struct slice *message, struct bench_field *ret_field);

/* The revision in the header of any response, 0 when it has none. */
int64_t bench_message_revision(struct slice response);

struct bench_watch_answer {
    int64_t watch_id;
    bool created;
    bool canceled;
    int64_t compact_revision;
    uint64_t events;
};

/* Calls on_event with the value of each event's key-value, empty if it has none. */
MUST_CHECK
enum status bench_message_watch_answer(struct slice message,
                                       void (*on_event)(void *argument, struct slice value),
                                       void *argument, struct bench_watch_answer *ret_answer);

#endif
