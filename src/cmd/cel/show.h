/* Writes values of expressions for people and programs. */
#ifndef VIGIL_CMD_CEL_SHOW_H
#define VIGIL_CMD_CEL_SHOW_H

#include "base/buf.h"
#include "cel/value/value.h"

/*
 * Appends the value as an expression would write it, which is JSON where JSON has such values:
 * [1, 2u, duration("1s")]. With `as_json` it is always JSON: [1,2,"1s"]. ST_NOMEM.
 */
MUST_CHECK
enum status cel_show(struct cel_work *work, struct cel_value value, bool as_json, struct buf *to);

#endif
