/* The handlers of Maintenance.Snapshot, for the table of the Maintenance service. */
#ifndef VIGIL_ETCD_SERVICE_SNAPSHOT_H
#define VIGIL_ETCD_SERVICE_SNAPSHOT_H

#include "wire/grpc/call.h"

void snapshot_on_message(struct grpc_call *call, void *api, struct slice message);
void snapshot_on_end(struct grpc_call *call, void *api);

#endif
