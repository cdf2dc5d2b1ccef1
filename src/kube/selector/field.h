/*
 * Field selectors: "spec.nodeName=a,status.phase!=Running". Only fields that the resource allows;
 * texts of errors are those of Kubernetes.
 */
#ifndef VIGIL_KUBE_SELECTOR_FIELD_H
#define VIGIL_KUBE_SELECTOR_FIELD_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "kube/object/object.h"
#include "kube/resource/kind.h"

struct field_selector;

enum { FIELD_SELECTOR_BYTES_MAX = 64 * 1024, FIELD_TERMS_MAX = 64 };

MUST_CHECK
enum status field_selector_parse(struct arena *arena, struct slice text,
                                 const struct kube_kind *kind,
                                 const struct field_selector **ret_selector, struct error *error);

bool field_selector_is_empty(const struct field_selector *selector);

/* The value that a path must equal, if the selector says so: for scopes and indexes. */
bool field_selector_requires(const struct field_selector *selector, struct slice path,
                             struct slice *ret_value);

/* False: the object cannot match, since a value that is required stands nowhere in its bytes, nor
 * an escape that could stand for a part of it. Some ten times as fast as finding its fields. */
bool field_selector_may_match(const struct field_selector *selector, struct slice json);

/* A field that is missing counts as the empty string, as in Kubernetes; some of built-in kinds as
 * what it fills in there. */
bool field_selector_matches(const struct field_selector *selector,
                            const struct kube_object *object);

#endif
