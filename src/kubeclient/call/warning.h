/*
 * The Warning fields of a response, read as client-go reads them:
 *
 *     299 - "this API is deprecated"
 *     299 - "one", 299 kube-apiserver "two" "Mon, 02 Jan 2006 15:04:05 GMT"
 *
 * What follows a malformed warning in the same field is ignored.
 */
#ifndef VIGIL_KUBECLIENT_CALL_WARNING_H
#define VIGIL_KUBECLIENT_CALL_WARNING_H

#include "base/buf.h"

/* Takes the next warning from the value of a field. Its text, without quotes and escapes, is
 * appended to *text with a final zero. False: there is none, or no memory for it. */
MUST_CHECK
bool warning_next(struct slice *rest, struct buf *text);

#endif
