#ifndef VIGIL_WIRE_H2_ERROR_H
#define VIGIL_WIRE_H2_ERROR_H

#include "wire/h2/frame.h"

/* "REFUSED_STREAM"; "unknown" of what HTTP/2 does not define. */
const char *h2_error_name(enum h2_error error);

#endif
