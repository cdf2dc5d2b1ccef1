/*
 * Changing an object by a document. Each way works on trees in one arena and gives the changed
 * object; the one given may be changed on the way, also when it fails.
 *
 *   merge   RFC 7386: members replace, null removes
 *   json    RFC 6902: a list of operations, all or none
 */
#ifndef VIGIL_KUBE_PATCH_PATCH_H
#define VIGIL_KUBE_PATCH_PATCH_H

#include "codec/json/tree.h"

enum { PATCH_OPERATIONS_MAX = 10000 }; /* of a JSON patch, as in Kubernetes */

/* ST_NOMEM. */
MUST_CHECK
enum status patch_merge(struct arena *arena, struct json_node *object, struct json_node *patch,
                        struct json_node **ret_object);

/*
 * ST_INVALID: an operation cannot be done, the error says which and why, in the words of the
 * library that Kubernetes uses. ST_MALFORMED: the document is no JSON patch. ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status patch_json(struct arena *arena, struct json_node *object, struct json_node *patch,
                       struct json_node **ret_object, struct error *error);

#endif
