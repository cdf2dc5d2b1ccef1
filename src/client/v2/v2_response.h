/*
 * Reads responses of etcd's v2 keys API: an event, a tree of nodes, an error.
 *
 *     {"action": "set", "node": {"key": "/a", "value": "1", "modifiedIndex": 9, "createdIndex": 9},
 *      "prevNode": {…}}
 *     {"action": "get", "node": {"key": "/a", "dir": true, "nodes": [{…}, …]}}
 *     {"errorCode": 100, "message": "Key not found", "cause": "/a", "index": 8}
 *
 * Members that are not known are ignored. Memory: texts with escapes are decoded into the arena,
 * all others stay in the body. Nesting is bounded by the scanner and needs no stack. No state but
 * the reader's; any thread.
 */
#ifndef VIGIL_CLIENT_V2_V2_RESPONSE_H
#define VIGIL_CLIENT_V2_V2_RESPONSE_H

#include "base/memory/arena.h"
#include "codec/json/scanner.h"

enum v2_action {
    V2_ACTION_UNKNOWN,
    V2_ACTION_GET,
    V2_ACTION_CREATE,
    V2_ACTION_SET,
    V2_ACTION_UPDATE,
    V2_ACTION_COMPARE_AND_SWAP,
    V2_ACTION_DELETE,
    V2_ACTION_EXPIRE,
    V2_ACTION_COMPARE_AND_DELETE,
};

struct v2_node {
    bool present; /* false: there is no such node, and nothing else is valid */
    bool dir;
    bool bad_text; /* the key or the value is not UTF-8, so it is not valid */
    struct slice key, value;
    int64_t modified, created; /* indexes; 0 if they are missing */
};

struct v2_event {
    enum v2_action action;
    struct v2_node node, prev;
};

/* ST_MALFORMED, ST_NOMEM. The event borrows the body and the arena. */
MUST_CHECK
enum status v2_event_read(struct slice body, struct arena *arena, struct v2_event *ret_event);

/* The nodes of a tree that are not directories, one after the other. */
struct v2_tree_reader {
    struct json_scanner scanner;
    struct v2_node node; /* under way; not present: the rest of a directory is skipped */
};

/* The body is borrowed. */
void v2_tree_begin(struct v2_tree_reader *reader, struct slice body);
/* ST_END: that was the last one. ST_MALFORMED, ST_NOMEM: nothing follows. */
MUST_CHECK
enum status v2_tree_next(struct v2_tree_reader *reader, struct arena *arena,
                         struct v2_node *ret_node);

struct v2_error {
    int64_t code, index; /* 0 if they are missing */
    struct slice message, cause;
};

/* ST_MALFORMED, ST_NOMEM. The error borrows the body and the arena. */
MUST_CHECK
enum status v2_error_read(struct slice body, struct arena *arena, struct v2_error *ret_error);

#endif
