/*
 * The request of a call about keys, decoded. One that has only the usual fields, in order, is read
 * without the table of fields. Slices refer to the call's bytes.
 */
#ifndef VIGIL_EMBED_REQUEST_H
#define VIGIL_EMBED_REQUEST_H

#include "client/call/call.h"
#include "codec/pb/rpc.pb.h"

MUST_CHECK
enum status embed_request_range(struct vigil_call *call, struct pb_range_request *ret_request);
MUST_CHECK
enum status embed_request_put(struct vigil_call *call, struct pb_put_request *ret_request);

#endif
