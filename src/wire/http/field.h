/* One header field of HTTP. HTTP/2 has its names in lower case, HTTP/1.1 as they were sent. */
#ifndef VIGIL_WIRE_HTTP_FIELD_H
#define VIGIL_WIRE_HTTP_FIELD_H

#include "base/slice.h"

struct http_field {
    struct slice name;
    struct slice value;
};

/* Equal but for the case of ASCII letters. */
bool http_name_equal(struct slice a, struct slice b);

#endif
