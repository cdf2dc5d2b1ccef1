/* What requests about keys share, alone or in a transaction. */
#ifndef VIGIL_CLIENT_API_KV_H
#define VIGIL_CLIENT_API_KV_H

#include "client/call/call.h"
#include "client/call/prefix.h"
#include "client/driver/bytes.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/kv.h>

/* Copies a request of the installed headers, which begins with its size, into our message. A
 * program that was compiled with an older header has a shorter one. */
void kv_request_copy(void *to, size_t to_bytes, const void *request);

/* Adds the client's prefix to a range of a message. ST_NOMEM. memory is finished after the message
 * was encoded. */
MUST_CHECK
enum status kv_request_prefix(const struct vigil_client *client, struct slice *key,
                              struct slice *range_end, struct prefixed_range *memory);

#endif
