/*
 * Texts that Go's types read from JSON: whether clients in Go can read them, and Go's words if not.
 * One object with such a text would end every typed list and watch of its kind.
 */
#ifndef VIGIL_KUBE_SCHEMA_GO_VALUE_H
#define VIGIL_KUBE_SCHEMA_GO_VALUE_H

#include "base/error.h"
#include "base/slice.h"

/* RFC 3339; micro: with six digits of a second, else with any number of them. ST_INVALID. */
MUST_CHECK
enum status go_time_check(struct slice text, bool micro, struct error *error);

/* "1.5", "100m", "2Gi", "3e2". ST_INVALID. */
MUST_CHECK
enum status go_quantity_check(struct slice text, struct error *error);

#endif
