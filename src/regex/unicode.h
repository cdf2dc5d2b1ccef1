/* The classes of characters that Unicode defines. */
#ifndef VIGIL_REGEX_UNICODE_H
#define VIGIL_REGEX_UNICODE_H

#include "regex/ranges.h"

/*
 * Adds the characters of a category or script, such as "Lu", "Letter" or "greek", to ranges, as
 * Go's \p{name} knows them; `folded`: with those that differ only in case. ST_NOT_FOUND: there is
 * no class of this name. ST_NOMEM.
 */
MUST_CHECK
enum status unicode_add_class(struct slice name, bool folded, struct regex_ranges *ranges);

#endif
