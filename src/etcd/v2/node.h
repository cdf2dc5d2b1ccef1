/*
 * A node of the v2 API as it is stored: a key of v3 under a separate prefix, with a header before
 * its value.
 *
 *     /a/b   key    "_vigil/v2/keys" NUL "a" NUL "b"
 *            value  kind, action, expiry (8), created index (8), then the value or, for an
 *                   updated directory, its modified index (8), which an update does not change
 *
 * Because of the NUL between the parts, a directory comes directly before its content, which is
 * contiguous and sorted. Every directory except the root has a key. The modified index of all other
 * nodes is the revision of the key. A node whose expiry has passed does not exist for clients,
 * although its lease may not be revoked yet. Clients of v3 can write to these keys, too: values
 * that are not nodes are skipped, and nothing about them is asserted.
 */
#ifndef VIGIL_ETCD_V2_NODE_H
#define VIGIL_ETCD_V2_NODE_H

#include "base/buf.h"
#include "base/memory/arena.h"

#define V2_KEYS_ROOT "_vigil/v2/keys"

enum {
    V2_DEPTH_MAX = 64,        /* parts of a path */
    V2_PATH_BYTES_MAX = 4096, /* limit on the length of a path in its clean form */
};

/* The action that made a version of a node; part of the stored value. */
enum v2_action {
    V2_IMPLICIT, /* a directory created for a node in it, without an event */
    V2_SET,
    V2_CREATE,
    V2_UPDATE,
    V2_COMPARE_AND_SWAP,
    /* Not stored: */
    V2_GET,
    V2_DELETE,
    V2_COMPARE_AND_DELETE,
    V2_EXPIRE,
};

struct v2_key {
    struct slice key;                /* in the store */
    size_t depth;                    /* 0: the root */
    uint16_t ends[V2_DEPTH_MAX + 1]; /* length of the key of each ancestor; ends[0]: of the root */
};

/* The key of a path, which is cleaned like Go's path.Clean. In the arena. ST_LIMIT: it is too long
 * or too deep; ST_INVALID: it has a NUL. */
MUST_CHECK
enum status v2_key_make(struct arena *arena, struct slice path, struct v2_key *ret_key);
/* The key of a child. ST_LIMIT as above. */
MUST_CHECK
enum status v2_key_child(struct arena *arena, const struct v2_key *parent, struct slice name,
                         struct v2_key *ret_key);
/* The key of the ancestor at this depth. */
struct slice v2_key_part(const struct v2_key *key, size_t depth);
/* The first key after the node and its content; and the first key of its content. In the arena. */
MUST_CHECK
enum status v2_key_end(struct arena *arena, struct slice key, struct slice *ret_end);
MUST_CHECK
enum status v2_key_first_child(struct arena *arena, struct slice key, struct slice *ret_first);
/* Appends the path of a stored key, such as "/a/b", or "/" for the root. */
MUST_CHECK
enum status v2_key_path(struct slice key, struct buf *to);
/* How many parts a key has after its first base_len bytes. */
size_t v2_key_depth_below(struct slice key, size_t base_len);
/* Whether a part after the first base_len bytes begins with '_'. */
bool v2_key_is_hidden(struct slice key, size_t base_len);

struct v2_node {
    struct slice key;          /* in the store */
    struct slice value;        /* value of a file */
    int64_t revision;          /* revision of the key in the store; 0: it does not exist */
    int64_t modified, created; /* as clients see them */
    int64_t expires_ns;        /* by the real clock; 0: never */
    int64_t lease;
    uint8_t action; /* enum v2_action */
    bool dir;
    bool refresh; /* only its expiry was changed, without an event */
};

/* Parses a field `12 len KeyValue`; slices refer to it. False: the value is not a node. */
MUST_CHECK
bool v2_node_read(struct slice field, struct v2_node *ret_node);
static inline bool v2_node_is_expired(const struct v2_node *node, int64_t real_ns)
{
    return node->expires_ns && node->expires_ns <= real_ns;
}

/* The value for the store, in the arena. A created index of 0 means that this write creates the
 * node; the modified index of a directory is stored unless it is 0. */
MUST_CHECK
enum status v2_node_write(struct arena *arena, const struct v2_node *node, struct slice *ret_value);

/*
 * JSON of a node: open writes everything before "nodes", close the rest. The root has neither key
 * nor index. `gone`: the node of a delete event, which has no value.
 */
MUST_CHECK
enum status v2_node_json_open(struct buf *to, const struct v2_node *node, bool gone,
                              int64_t real_ns);
MUST_CHECK
enum status v2_node_json_close(struct buf *to, const struct v2_node *node);
/* {"action":…,"node":…,"prevNode":…} and a newline. Either may be NULL. */
MUST_CHECK
enum status v2_event_json(struct buf *to, enum v2_action action, const struct v2_node *node,
                          const struct v2_node *prev, int64_t real_ns);

#endif
