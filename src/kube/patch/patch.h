/*
 * Changing an object by a document. Each way works on trees in one arena and gives the changed
 * object; the one given may be changed on the way, also when it fails.
 *
 *   merge       RFC 7386: members replace, null removes
 *   json        RFC 6902: a list of operations, all or none
 *   strategic   Kubernetes' own, for kinds whose types are known: lists are merged by keys
 */
#ifndef VIGIL_KUBE_PATCH_PATCH_H
#define VIGIL_KUBE_PATCH_PATCH_H

#include "codec/json/tree.h"
#include "kube/schema/schema.h"

enum { PATCH_OPERATIONS_MAX = 10000 }; /* of a JSON patch, as in Kubernetes */

/* ST_NOMEM. */
MUST_CHECK
enum status patch_merge(struct arena *arena, struct json_node *object,
                        const struct json_node *patch, struct json_node **ret_object);

/*
 * ST_INVALID: an operation cannot be done, the error says which and why, in the words of the
 * library that Kubernetes uses. ST_MALFORMED: the document is no JSON patch. ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status patch_json(struct arena *arena, struct json_node *object, const struct json_node *patch,
                       struct json_node **ret_object, struct error *error);

/*
 * What it puts in is without directives and nulls, as if Go's types had been filled with it. Takes
 * time in proportion to the object and the patch.
 *
 * The error is in the words of apimachinery's strategicpatch. ST_MALFORMED: what Kubernetes answers
 * with 400, ST_INVALID: with 422, ST_WRONG_FORMAT: with 500, as it does for all that does not fit
 * the type or has no merge key. ST_NOMEM.
 */
MUST_CHECK
enum status patch_strategic(struct arena *arena, const struct kube_type *type,
                            struct json_node *object, const struct json_node *patch,
                            struct json_node **ret_object, struct error *error);

#endif
