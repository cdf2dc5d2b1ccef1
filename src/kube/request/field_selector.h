/*
 * Field selectors: "spec.nodeName=a,status.phase!=Running". Only fields that the resource allows
 * are accepted; errors have the texts of Kubernetes.
 */
#ifndef VIGIL_KUBE_REQUEST_FIELD_SELECTOR_H
#define VIGIL_KUBE_REQUEST_FIELD_SELECTOR_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "kube/types/kind.h"
#include "kube/types/object/object.h"

struct field_selector;

enum { FIELD_SELECTOR_BYTES_MAX = 64 * 1024, FIELD_TERMS_MAX = 64 };

MUST_CHECK
enum status field_selector_parse(struct arena *arena, struct slice text,
                                 const struct kube_kind *kind,
                                 const struct field_selector **ret_selector, struct error *error);

bool field_selector_is_empty(const struct field_selector *selector);

/* Returns the value that the selector requires at a path, if any: for scopes and indexes. */
bool field_selector_requires(const struct field_selector *selector, struct slice path,
                             struct slice *ret_value);

/*
 * False: the object cannot match, because its bytes have neither a required value nor an escape
 * that could be part of it. About ten times as fast as reading its fields.
 */
bool field_selector_may_match(const struct field_selector *selector, struct slice json);

/*
 * A missing field counts as the empty string, as in Kubernetes, or as its default in some built-in
 * kinds.
 */
bool field_selector_matches(const struct field_selector *selector,
                            const struct kube_object *object);

#endif
