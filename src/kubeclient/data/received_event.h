/* One event that a watch has received, read from a frame: {"type":"ADDED","object":{…}}, or the same
 * in protobuf. */
#ifndef VIGIL_KUBECLIENT_DATA_RECEIVED_EVENT_H
#define VIGIL_KUBECLIENT_DATA_RECEIVED_EVENT_H

#include "base/error.h"
#include "kubeclient/data/framer.h"

enum received_type {
    RECEIVED_ADDED,
    RECEIVED_MODIFIED,
    RECEIVED_DELETED,
    RECEIVED_BOOKMARK,
    RECEIVED_ERROR, /* the object is a Status */
};

/* Refers to the frame. */
struct received_event {
    enum received_type type;
    struct slice object;      /* JSON, or an envelope of protobuf (protobuf.h) */
    struct slice version;     /* its resourceVersion; empty if it has none, or one with escapes */
    bool ends_initial_events; /* a BOOKMARK after the last object of the state */
};

/*
 * Returns the next event of a watch whose body is fed to the framer, valid until the next call.
 *
 * ST_AGAIN       the piece is used up
 * ST_LIMIT       an event was longer than the framer allows and is dropped
 * ST_MALFORMED   the watch sent something else, with a text for people
 * ST_NOMEM
 */
MUST_CHECK
enum status received_event_next(struct framer *framer, struct received_event *ret_event,
                                struct error *error);

/* An event from its frame. ST_MALFORMED, with a text for people. */
MUST_CHECK
enum status received_event_read(struct slice frame, struct received_event *ret_event,
                                struct error *error);
MUST_CHECK
enum status received_event_read_protobuf(struct slice frame, struct received_event *ret_event,
                                         struct error *error);

#endif
