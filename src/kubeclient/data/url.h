/* The path and the query of a request. */
#ifndef VIGIL_KUBECLIENT_DATA_URL_H
#define VIGIL_KUBECLIENT_DATA_URL_H

#include "base/buf.h"
#include "base/error.h"

#include <vigil/kube/target.h>

/* Appends the path, "/apis/apps/v1/namespaces/default/deployments/web". ST_INVALID: a part is
 * missing or could not be one part of a path; ST_NOMEM. */
MUST_CHECK
enum status url_append_target(struct buf *to, const struct vigil_kube_target *target,
                              struct error *error);

/* Appends "?name=value", or with "&" after an earlier one. *count is 0 at first. */
MUST_CHECK
enum status url_append_parameter(struct buf *to, size_t *count, const char *name,
                                 struct slice value);

#endif
