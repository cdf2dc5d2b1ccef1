/*
 * The part of Kubernetes' JSONPath that printer columns use: members, items, all items, and a
 * filter for equality:
 *
 *     .spec.replicas   .status.conditions[?(@.type=="Ready")].status   .spec.ports[0] .a['b.c'][*]
 *
 * Only the first match is used, as in the API server. A path is allocated in an arena and
 * read-only.
 */
#ifndef VIGIL_KUBE_CUSTOM_JSONPATH_H
#define VIGIL_KUBE_CUSTOM_JSONPATH_H

#include "codec/json/tree.h"

struct jsonpath;

enum { JSONPATH_STEPS_MAX = 64, JSONPATH_BYTES_MAX = 4096 };

/* ST_INVALID: not a path, or one with unsupported parts. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status jsonpath_parse(struct arena *arena, struct slice text,
                           const struct jsonpath **ret_path);

/* The first match, or NULL. */
const struct json_node *jsonpath_find(const struct jsonpath *path, const struct json_node *root);

#endif
