/* Errors as users of the library see them (vigil/types.h), made from ours and from the server's. */
#ifndef VIGIL_CLIENT_CONNECT_ERROR_H
#define VIGIL_CLIENT_CONNECT_ERROR_H

#include "base/slice.h"
#include "base/status.h"

#include <vigil/types.h>

/* An error of the library itself: no server answered. The text is cut off if it is too long. */
void client_error_set(vigil_error *error, enum vigil_code code, enum vigil_outcome outcome,
                      const char *format, ...) PRINTF_LIKE(4, 5);

/* The status that a server answered with. */
void client_error_from_server(vigil_error *error, enum grpc_code code, struct slice text);

/* The reason why a server cancelled a watch: a text, or a status as Go prints it, "rpc error: code
 * = PermissionDenied desc = etcdserver: permission denied". */
void client_error_from_reason(vigil_error *error, struct slice reason);

/* The server says that the deadline of the call has passed. etcd 3.4 has no code for that. */
bool client_is_deadline(enum grpc_code code, struct slice text);

/* Which of our statuses the server's text stands for; ST_COUNT: none. */
enum status client_status_of(struct slice text);

#endif
