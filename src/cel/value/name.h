/*
 * The names of properties in expressions. Kubernetes escapes those that CEL cannot have: "a.b" is
 * written a__dot__b, and "namespace", which CEL reserves, __namespace__.
 */
#ifndef VIGIL_CEL_VALUE_NAME_H
#define VIGIL_CEL_VALUE_NAME_H

#include "base/memory/arena.h"

/* In the arena, unless nothing is to be escaped. ST_INVALID: the name cannot be written. ST_NOMEM.
 */
MUST_CHECK
enum status cel_name_escape(struct arena *arena, struct slice name, struct slice *ret_escaped);
/* ST_INVALID: no name is escaped like this. ST_NOMEM. */
MUST_CHECK
enum status cel_name_unescape(struct arena *arena, struct slice escaped, struct slice *ret_name);

#endif
