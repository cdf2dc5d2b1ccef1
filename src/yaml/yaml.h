/*
 * Conversion between YAML and JSON trees as in Kubernetes: YAML 1.1 in UTF-8, so that yes and on
 * are true; keys become strings; only the first document is read. Limits: the nesting of JSON,
 * YAML_ALIASES_MAX uses of anchors, and the arena, which holds copies of anchored values. libyaml
 * compares each %TAG with all others and each token in brackets with all open ones; both are
 * limited here.
 */
#ifndef VIGIL_YAML_YAML_H
#define VIGIL_YAML_YAML_H

#include "codec/json/tree.h"

enum {
    YAML_ALIASES_MAX = 1000,
    YAML_ANCHORS_MAX = 256,
    YAML_TAG_LINES_MAX = 64,        /* lines that begin with %TAG */
    YAML_TAG_LINE_BYTES_MAX = 1024, /* bytes of such a line; its prefix is copied at each use */
    YAML_FLOW_STEPS_MAX = 4 << 20, /* values in brackets, each counted once per enclosing bracket */
};

/* Everything is copied into the arena. ST_MALFORMED with *error set; ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status yaml_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error);

/*
 * The same, and lists the keys that are set again in their map, one per line, in go-yaml's words:
 * `line 8: key "data" already set in map`. The last value counts. A list longer than
 * YAML_REPEATS_BYTES_MAX ends there.
 */
enum { YAML_REPEATS_BYTES_MAX = 4096 };
MUST_CHECK
enum status yaml_tree_read_strict(struct arena *arena, struct slice text,
                                  struct json_node **ret_root, struct buf *repeats,
                                  struct error *error);

enum { YAML_BYTES_MAX = 16 << 20 };

/*
 * Appends a tree as block YAML, with sorted keys; texts that could be read as another type are
 * quoted. The arena is for temporary memory. ST_LIMIT: longer than YAML_BYTES_MAX, most of it
 * indentation; ST_NOMEM.
 */
MUST_CHECK
enum status yaml_tree_write(struct arena *arena, const struct json_node *root, struct buf *to);

#endif
