/*
 * The three kinds of patches. Each works on trees in one arena and returns the patched object; the
 * input object may be changed, also if the patch fails.
 *
 *     merge       RFC 7386: members replace, null removes
 *     json        RFC 6902: a list of operations, all or none
 *     strategic   Kubernetes' own, for kinds with known types: lists are merged by keys
 */
#ifndef VIGIL_KUBE_MERGE_PATCH_PATCH_H
#define VIGIL_KUBE_MERGE_PATCH_PATCH_H

#include "codec/json/tree.h"
#include "kube/types/schema/schema.h"

enum { PATCH_OPERATIONS_MAX = 10000 }; /* per JSON patch, as in Kubernetes */

/* ST_NOMEM. */
MUST_CHECK
enum status patch_merge(struct arena *arena, struct json_node *object,
                        const struct json_node *patch, struct json_node **ret_object);

/*
 * ST_INVALID: an operation failed; the error has the text of the library that Kubernetes uses.
 * ST_MALFORMED: the document is not a JSON patch. ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status patch_json(struct arena *arena, struct json_node *object, const struct json_node *patch,
                       struct json_node **ret_object, struct error *error);

/*
 * Inserted values have no directives and nulls, as if they had been decoded into Go types. The time
 * is linear in the size of the object and the patch.
 *
 * Errors have the texts of apimachinery's strategicpatch. ST_MALFORMED: Kubernetes answers 400;
 * ST_INVALID: 422; ST_WRONG_FORMAT: 500, for everything that does not match the type or has no
 * merge key. ST_NOMEM.
 */
MUST_CHECK
enum status patch_strategic(struct arena *arena, const struct kube_type *type,
                            struct json_node *object, const struct json_node *patch,
                            struct json_node **ret_object, struct error *error);

#endif
