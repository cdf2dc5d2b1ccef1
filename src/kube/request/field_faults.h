/*
 * Errors in the fields of a body, as one text in the form of Kubernetes:
 * `unknown field "spec.a", duplicate field "b[0].c"`, and of a JSON patch itself
 * `json patch duplicate field "[0].op"`.
 */
#ifndef VIGIL_KUBE_REQUEST_FIELD_FAULTS_H
#define VIGIL_KUBE_REQUEST_FIELD_FAULTS_H

#include "base/buf.h"

/* At most this many are sorted; the others follow unsorted. */
enum { FIELD_FAULTS_MAX = 96 };

/* Removes and returns the first one. */
struct slice field_faults_take(struct slice *faults);

/*
 * Sorts the errors of a JSON text in the order in which Go finds them: an unknown field where it
 * occurs first, a duplicate one where it occurs again. Each is reported once, and nothing within an
 * unknown field. ST_NOMEM: they are unchanged.
 */
MUST_CHECK
enum status field_faults_sort(struct slice json, struct buf *faults);

/* The same where Go uses a map: duplicate fields in their order, then unknown ones by name, and
 * items by number. */
MUST_CHECK
enum status field_faults_sort_by_name(struct buf *faults);

#endif
