/* What both ways to parse a command line share. */
#ifndef VIGIL_BASE_OPTIONS_OPTIONS_PRIVATE_H
#define VIGIL_BASE_OPTIONS_OPTIONS_PRIVATE_H

#include "base/options/options.h"

/* The row itself, also when the name is an alias of it. NULL: none. */
const struct option *options_find_place(const struct options_table *table, struct slice name,
                                        size_t *ret_place);

/* Parses a value and stores it. ST_INVALID: its syntax is wrong; ST_LIMIT: it is out of range. */
MUST_CHECK
enum status options_store(const struct options *options, const struct option *row,
                          const char *text);

/* The values of all flags of this name so far, separated by commas; NULL: they are too long. */
const char *options_join(struct options *options, const struct option *row, const char *value);

#endif
