/* The query of a list or of the deletion of a collection. */
#ifndef VIGIL_KUBECLIENT_CALL_LIST_QUERY_H
#define VIGIL_KUBECLIENT_CALL_LIST_QUERY_H

#include "base/buf.h"
#include "base/error.h"

#include <vigil/kube/call.h>

/* The options of a program, which may have been built with a smaller struct; NULL: none are given.
 * ST_INVALID: its size is not set. */
MUST_CHECK
enum status list_options_read(const vigil_kube_list_options *options,
                              vigil_kube_list_options *ret_options, struct error *error);

/* Appends "?name=value" for everything that is given, in client-go's order. A page that continues
 * another one has no version of its own. ST_NOMEM. */
MUST_CHECK
enum status list_query_append(struct buf *to, const vigil_kube_list_options *options);

#endif
