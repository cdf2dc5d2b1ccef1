/*
 * Operations on values according to their types: listing fields, comparing, merging an applied
 * configuration, removing fields. They mirror structured-merge-diff; kube/merge/apply/apply_type.h
 * says what is owned as a whole. All trees are in one arena, and input trees are not changed. The
 * recursion is as deep as the trees (JSON_TREE_DEPTH_MAX).
 *
 * Each returns ST_NOMEM, or ST_INVALID with `why` set if an item of a list cannot be identified.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_TYPED_H
#define VIGIL_KUBE_MERGE_APPLY_TYPED_H

#include "kube/merge/apply/apply_type.h"
#include "kube/merge/apply/field_set.h"

struct typed {
    struct arena *arena;
    struct error *why;
};

/* All fields that the value has. */
MUST_CHECK
enum status typed_fields(const struct typed *typed, struct apply_type type,
                         const struct json_node *value, const struct field_set **ret_set);

/* The differences between `before` and `after`, marked as added, modified or removed. */
MUST_CHECK
enum status typed_compare(const struct typed *typed, struct apply_type type,
                          const struct json_node *before, const struct json_node *after,
                          const struct field_set **ret_marked);

/* `live` with everything that `config` has. NULL: both are empty. */
MUST_CHECK
enum status typed_merge(const struct typed *typed, struct apply_type type,
                        const struct json_node *live, const struct json_node *config,
                        struct json_node **ret_merged);

/* A copy without these fields and items; a container that loses everything becomes null. */
MUST_CHECK
enum status typed_without(const struct typed *typed, struct apply_type type,
                          const struct json_node *value, const struct field_set *fields,
                          struct json_node **ret_value);

/* The set with declared fields that lead to members added as members. */
MUST_CHECK
enum status typed_with_named(const struct typed *typed, struct apply_type type,
                             const struct field_set *set, const struct field_set **ret_set);

/* Adapts a set to types that have become atomic: the whole is owned instead of its items. */
MUST_CHECK
enum status typed_reconcile(const struct typed *typed, struct apply_type type,
                            const struct field_set *set, const struct field_set **ret_set);

/*
 * Checks a value against its type. Appends an error per line, at most TYPED_ERRORS_MAX: ".spec.a:
 * field not declared in schema". *ret_count: the number of all errors. ST_NOMEM.
 */
enum { TYPED_ERRORS_MAX = 64 };
MUST_CHECK
enum status typed_validate(struct arena *arena, struct apply_type type,
                           const struct json_node *value, struct buf *errors, size_t *ret_count);

#endif
