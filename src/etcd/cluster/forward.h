/*
 * With an engine in front of a cluster: the methods that are not answered here. The client's bytes
 * go to the cluster as they came, with its token and its deadline, and the cluster's answers, code
 * and text come back. Range, RangeStream, Watch and LeaseKeepAlive are answered by their services,
 * and Health by this server.
 */
#ifndef VIGIL_ETCD_CLUSTER_FORWARD_H
#define VIGIL_ETCD_CLUSTER_FORWARD_H

#include "base/slice.h"
#include "base/status.h"

struct etcd_api;
struct forward_rows;
struct grpc_call;

enum {
    /* Bytes of a stream that its client does not read: beyond the first number the cluster is
     * stopped, and it continues below the second. A window of the connection to the cluster may
     * come on top. */
    FORWARD_QUEUED_BYTES_MAX = 256 * 1024,
    FORWARD_QUEUED_BYTES_LOW = 64 * 1024,
};

/* Adds the methods. The rows are owned by the API, and freed after its services. */
MUST_CHECK
enum status forward_add(struct etcd_api *api, struct forward_rows **ret_rows);
void forward_rows_free(struct forward_rows *rows); /* accepts NULL */

bool forward_requires_leader(const struct grpc_call *call);
/* Through which servers the call has come; see struct engine_forward. */
struct slice forward_via(const struct grpc_call *call);

/* The text of an error of the cluster, as the client gets it: see forward_fail. */
struct slice forward_text(const struct grpc_call *call, const struct etcd_api *api,
                          struct slice text);
/*
 * Fails a call as the cluster has. If the client relies on the name in its certificate, which only
 * this server sees, the text says what to do instead.
 */
void forward_fail(struct grpc_call *call, const struct etcd_api *api, enum grpc_code code,
                  struct slice text);

#endif
