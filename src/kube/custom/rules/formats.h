/* Strings with a format that rules see as a duration, a timestamp or bytes, read as kube-openapi's
 * strfmt does. */
#ifndef VIGIL_KUBE_CUSTOM_RULES_FORMATS_H
#define VIGIL_KUBE_CUSTOM_RULES_FORMATS_H

#include "cel/value/value.h"

typedef struct cel_value rule_reader(struct cel_work *work, struct slice text);

/* NULL: rules see the string itself. */
rule_reader *rule_format_reader(struct slice format);

#endif
