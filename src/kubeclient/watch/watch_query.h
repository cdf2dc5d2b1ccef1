/* What a watch asks for, and in which format the server answers. */
#ifndef VIGIL_KUBECLIENT_WATCH_WATCH_QUERY_H
#define VIGIL_KUBECLIENT_WATCH_WATCH_QUERY_H

#include "base/buf.h"
#include "base/error.h"
#include "kubeclient/data/framer.h"

#include <vigil/kube/target.h>

/* NULL or "" means that a text is not given. */
struct watch_params {
    const struct vigil_kube_target *target; /* with a name: the one object of this name */
    const char *label_selector, *field_selector;
    const char *version;
    bool initial_events; /* sendInitialEvents, with resourceVersionMatch=NotOlderThan */
    bool bookmarks;
    bool protobuf;
    const char *accept; /* the Accept field, a constant; NULL: what protobuf says */
    int64_t timeout_s;  /* 0: the server chooses */
};

/* Appends the path and the query, with the parameters in client-go's order. ST_INVALID: a part is
 * missing or cannot be sent; ST_NOMEM. */
MUST_CHECK
enum status watch_query_append(struct buf *to, const struct watch_params *params,
                               struct error *error);

/* The value of the Accept field. */
const char *watch_query_accept(bool protobuf);

/* From the value of Content-Type; without one it is JSON, as in client-go. ST_INVALID: we do not
 * know the media type, or it is not a watch. */
MUST_CHECK
enum status watch_format_read(struct slice content_type, enum framer_format *ret_format,
                              struct error *error);

#endif
