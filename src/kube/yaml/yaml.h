/*
 * YAML as a JSON tree, as Kubernetes reads and writes it: YAML 1.1 in UTF-8, so that yes and on are
 * true; keys are made texts; the first document counts. Bounds: nesting as JSON's, YAML_ALIASES_MAX
 * uses of anchors, and the arena, which copies of anchored values fill. libyaml compares each %TAG
 * with all others and each token in brackets with all that are open; both are bounded here.
 */
#ifndef VIGIL_KUBE_YAML_YAML_H
#define VIGIL_KUBE_YAML_YAML_H

#include "codec/json/tree.h"

enum {
    YAML_ALIASES_MAX = 1000,
    YAML_ANCHORS_MAX = 256,
    YAML_TAG_LINES_MAX = 64,        /* lines that begin with %TAG */
    YAML_TAG_LINE_BYTES_MAX = 1024, /* of one; its prefix is copied wherever it is used */
    YAML_FLOW_STEPS_MAX = 4 << 20,  /* values in brackets, each counted with all around it */
};

/* Everything is copied into the arena. ST_MALFORMED with what is wrong; ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status yaml_tree_read(struct arena *arena, struct slice text, struct json_node **ret_root,
                           struct error *error);

enum { YAML_BYTES_MAX = 16 << 20 };

/* Appends a tree as block YAML, members in the order of their keys; texts that could be taken for
 * something else stand in quotes. The arena is for what is made on the way. ST_LIMIT: longer than
 * YAML_BYTES_MAX, most of it indentation; ST_NOMEM. */
MUST_CHECK
enum status yaml_tree_write(struct arena *arena, const struct json_node *root, struct buf *to);

#endif
