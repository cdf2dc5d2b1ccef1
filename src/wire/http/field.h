/* One HTTP header field. Names are in lower case over HTTP/2, and as they were sent over HTTP/1.1.
 */
#ifndef VIGIL_WIRE_HTTP_FIELD_H
#define VIGIL_WIRE_HTTP_FIELD_H

#include "base/slice.h"

struct http_field {
    struct slice name;
    struct slice value;
};

/* Ignores the case of ASCII letters. */
bool http_name_equal(struct slice a, struct slice b);

#endif
