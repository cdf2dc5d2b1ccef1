/*
 * Field sets as clients see them: the JSON of fieldsV1, and paths in the messages of conflicts.
 *
 *     {"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}} .spec.ports[port=80].name
 *
 * The JSON comes from clients and may contain anything.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_FIELDS_V1_H
#define VIGIL_KUBE_MERGE_APPLY_FIELDS_V1_H

#include "kube/merge/apply/field_set.h"

/* Limit of steps in all sets of one object. */
enum { FIELDS_V1_STEPS_MAX = 100000 };
enum { FIELD_KEY_MEMBERS_MAX = 64 };

/*
 * A copy of a scalar without escapes, so that it can be compared; NULL: not a scalar, or no memory.
 */
struct json_node *field_scalar(struct arena *arena, const struct json_node *node);

/*
 * ST_MALFORMED: not a field set; ST_LIMIT: more than *budget steps (it is counted down); ST_NOMEM.
 * Unknown kinds of steps are skipped. Texts are not copied from the tree.
 */
MUST_CHECK
enum status fields_v1_read(struct arena *arena, const struct json_node *tree, size_t *budget,
                           const struct field_set **ret_set);
/* ST_NOMEM. */
MUST_CHECK
enum status fields_v1_write(struct arena *arena, const struct field_set *set,
                            struct json_node **ret_tree);

/* Replaces the text by the step: "f:spec", `k:{"port":80}`. ST_NOMEM. */
MUST_CHECK
enum status field_element_write(const struct field_element *element, struct buf *to);

/* Appends ".spec", `[name="a"]`, `[="x"]` or "[0]". ST_NOMEM. */
MUST_CHECK
enum status field_element_append(const struct field_element *element, struct arena *arena,
                                 struct buf *to);

/* Go's encoder escapes these three, because JSON may be inside a page of HTML. */
static inline bool is_escaped_by_go(uint8_t c)
{
    return c == '<' || c == '>' || c == '&';
}
/* Appends JSON with <, > and & escaped, as Go's encoder writes it. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status go_json_append(const struct json_node *node, struct buf *to);

#endif
