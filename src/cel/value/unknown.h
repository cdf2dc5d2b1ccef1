/* Values of fields that a schema does not declare: they can only be compared. */
#ifndef VIGIL_CEL_VALUE_UNKNOWN_H
#define VIGIL_CEL_VALUE_UNKNOWN_H

#include "cel/value/opaque.h"
#include "cel/value/value.h"

struct cel_unknown {
    struct cel_opaque opaque; /* its ops are cel_unknown_ops */
    struct cel_value raw;
};

extern const struct cel_opaque_ops cel_unknown_ops;

#endif
