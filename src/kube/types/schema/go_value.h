/*
 * Texts that Go's types parse from JSON: whether Go clients can read them, with Go's error texts if
 * not. One object with an invalid text would break every typed list and watch of its kind.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_GO_VALUE_H
#define VIGIL_KUBE_TYPES_SCHEMA_GO_VALUE_H

#include "base/error.h"
#include "base/slice.h"
#include "codec/json/tree.h"

/* RFC 3339; micro: with exactly six digits of a fraction, otherwise with any number. ST_INVALID. */
MUST_CHECK
enum status go_time_check(struct slice text, bool micro, struct error *error);

/* The name of a value's type in the errors of Go's decoder: "array". */
const char *kube_json_type(const struct json_node *node);

/* "1.5", "100m", "2Gi", "3e2". ST_INVALID. */
MUST_CHECK
enum status go_quantity_check(struct slice text, struct error *error);

#endif
