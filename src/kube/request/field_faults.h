/*
 * What is wrong with the fields of a body, in one text as Kubernetes tells it:
 * `unknown field "spec.a", duplicate field "b[0].c"`, and of a JSON patch itself
 * `json patch duplicate field "[0].op"`.
 */
#ifndef VIGIL_KUBE_REQUEST_FIELD_FAULTS_H
#define VIGIL_KUBE_REQUEST_FIELD_FAULTS_H

#include "base/buf.h"

/* So many are put in order; those behind them stay where they are. */
enum { FIELD_FAULTS_MAX = 96 };

/* Takes the first of them off. */
struct slice field_faults_take(struct slice *faults);

/*
 * Puts the faults of a JSON text, which was read before, in the order in which Go meets them: an
 * unknown field where it stands first, a duplicate one where it comes again. Each is told once, and
 * nothing of what is within an unknown field. ST_NOMEM: they are as they were.
 */
MUST_CHECK
enum status field_faults_sort(struct slice json, struct buf *faults);

/* The same for what Go makes a map of: duplicate fields, as they stand, before unknown ones by
 * their names, and items by their numbers. */
MUST_CHECK
enum status field_faults_sort_by_name(struct buf *faults);

#endif
