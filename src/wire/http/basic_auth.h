/* The value of an Authorization field for a user and a password (RFC 7617). */
#ifndef VIGIL_WIRE_HTTP_BASIC_AUTH_H
#define VIGIL_WIRE_HTTP_BASIC_AUTH_H

#include "base/buf.h"

/* Appends "Basic …". ST_NOMEM. */
MUST_CHECK
enum status http_basic_auth_append(struct buf *to, const char *user, const char *password);

#endif
