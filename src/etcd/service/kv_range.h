/* The handlers of KV.Range and KV.RangeStream, for the table of the KV service. */
#ifndef VIGIL_ETCD_SERVICE_KV_RANGE_H
#define VIGIL_ETCD_SERVICE_KV_RANGE_H

#include "wire/grpc/call.h"

void kv_range_on_message(struct grpc_call *call, void *api, struct slice message);
void kv_range_stream_on_message(struct grpc_call *call, void *api, struct slice message);
void kv_range_on_end(struct grpc_call *call, void *api);

#endif
