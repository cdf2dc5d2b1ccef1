/* The rules of a schema as they are written, in the arena of the schema. */
#ifndef VIGIL_KUBE_CUSTOM_SCHEMA_RULE_H
#define VIGIL_KUBE_CUSTOM_SCHEMA_RULE_H

#include "base/slice.h"

/* How the refusal of a rule is reported; the first one is the default. */
enum schema_reason { SCHEMA_INVALID, SCHEMA_FORBIDDEN, SCHEMA_REQUIRED, SCHEMA_DUPLICATE };

/* One of x-kubernetes-validations. Texts that are not given are empty. */
struct schema_rule {
    struct slice rule, message, message_expression;
    struct slice field_path;
    enum schema_reason reason;
    bool optional_old; /* optionalOldSelf is true */
};

#endif
