/* A JSON number as an integer, if it is one: "12", "-3", but also "1.0" and "12e2", as in
 * proto3-JSON. Not "1.5", and nothing outside the type's range. */
#ifndef VIGIL_CODEC_JSON_NUMBER_H
#define VIGIL_CODEC_JSON_NUMBER_H

#include "base/slice.h"

/* The whole text is one number of RFC 8259. */
bool json_number_valid(struct slice text);

/* text must be a valid number. */
MUST_CHECK
bool json_number_i64(struct slice text, int64_t *ret_number);
MUST_CHECK
bool json_number_u64(struct slice text, uint64_t *ret_number);

#endif
