/*
 * A node of the v2 API as it lies in the store: a key of v3 under a prefix of its own, with a head
 * before its value.
 *
 *     /a/b   key    "_vigil/v2/keys" NUL "a" NUL "b"
 *            value  kind, action, expiry (8), created index (8), then the value; of a directory
 *                   that was updated, its modified index (8), which an update does not raise
 *
 * With NUL between its parts a directory lies just before all that is in it, and what is in it lies
 * together, sorted. Every directory but the root has a key. The modified index of others is the
 * revision. A node whose expiry has passed is not there, though its lease may not be revoked yet.
 * Clients of v3 can write there too: what is no node is passed over, and nothing is asserted.
 */
#ifndef VIGIL_ETCD_V2_NODE_H
#define VIGIL_ETCD_V2_NODE_H

#include "base/buf.h"
#include "base/memory/arena.h"

#define V2_KEYS_ROOT "_vigil/v2/keys"

enum {
    V2_DEPTH_MAX = 64,        /* parts of a path */
    V2_PATH_BYTES_MAX = 4096, /* of a path, tidied */
};

/* What made a version of a node; stands in the store. */
enum v2_action {
    V2_UNTOLD, /* a directory made on the way: no event */
    V2_SET,
    V2_CREATE,
    V2_UPDATE,
    V2_COMPARE_AND_SWAP,
    /* Not in the store. */
    V2_GET,
    V2_DELETE,
    V2_COMPARE_AND_DELETE,
    V2_EXPIRE,
};
const char *v2_action_name(enum v2_action action);

struct v2_key {
    struct slice key;                /* as it stands in the store */
    size_t depth;                    /* 0: the root */
    uint16_t ends[V2_DEPTH_MAX + 1]; /* how long the key of each part is; ends[0]: the root's */
};

/* The key of a path: tidied as Go's path.Clean does. In the arena. ST_LIMIT: too long or deep;
 * ST_INVALID: has a NUL. */
MUST_CHECK
enum status v2_key_make(struct arena *arena, struct slice path, struct v2_key *ret_key);
/* The key of a child. ST_LIMIT as above. */
MUST_CHECK
enum status v2_key_child(struct arena *arena, const struct v2_key *parent, struct slice name,
                         struct v2_key *ret_key);
/* Of its first parts. */
struct slice v2_key_part(const struct v2_key *key, size_t depth);
/* The first key after the node and all in it; and the first in it. In the arena. */
MUST_CHECK
enum status v2_key_end(struct arena *arena, struct slice key, struct slice *ret_end);
MUST_CHECK
enum status v2_key_first_child(struct arena *arena, struct slice key, struct slice *ret_first);
/* "/a/b" of a key in the store, which is below the root; "/" of the root. Appended. */
MUST_CHECK
enum status v2_key_path(struct slice key, struct buf *to);
/* How many parts a key has below one that it begins with. */
size_t v2_key_depth_below(struct slice key, size_t base_len);
/* Below the first base_len bytes there is a part that begins with '_'. */
bool v2_key_is_hidden(struct slice key, size_t base_len);

struct v2_node {
    struct slice key;          /* as in the store */
    struct slice value;        /* of a file */
    int64_t revision;          /* of the key in the store; 0: there is none */
    int64_t modified, created; /* as clients see them */
    int64_t expires_ns;        /* of the real clock; 0: never */
    int64_t lease;
    uint8_t action; /* enum v2_action */
    bool dir;
    bool refresh; /* only its time was made longer: no event */
};

/* From a field `12 len KeyValue`; slices refer to it. False: it is none of ours. */
MUST_CHECK
bool v2_node_read(struct slice field, struct v2_node *ret_node);
/* Its time has passed. */
static inline bool v2_node_is_over(const struct v2_node *node, int64_t real_ns)
{
    return node->expires_ns && node->expires_ns <= real_ns;
}

/* The value for the store, in the arena. A node whose created index is 0 is created by this; the
 * modified index of a directory is kept unless it is 0. */
MUST_CHECK
enum status v2_node_write(struct arena *arena, const struct v2_node *node, struct slice *ret_value);

/*
 * As JSON: open writes all that stands before "nodes", close the rest. The root has neither key nor
 * index. `gone`: the node of a delete, which has no value any more.
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
