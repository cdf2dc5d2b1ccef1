/*
 * Names of bad fields as Kubernetes reports them: `unknown field "spec.a", duplicate field "b[0]"`.
 * Keys are a client's bytes, so a path is always quoted as Go's strconv.Quote does: no key can end
 * the quotes, begin another error, or bring a line end into a header.
 */
#ifndef VIGIL_CODEC_JSON_FIELD_FAULT_H
#define VIGIL_CODEC_JSON_FIELD_FAULT_H

#include "base/buf.h"

/* Appends text with Go's escapes, without quotes around it. */
MUST_CHECK
enum status go_escape(struct slice text, struct buf *to);

/* Appends an error, after a comma unless it is the first. what: "unknown field". */
MUST_CHECK
enum status field_fault_append(struct buf *to, const char *what, struct slice path);

#endif
