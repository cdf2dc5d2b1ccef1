/*
 * A JSON number as an integer, if it is one: "12", "-3", but also "1.0" and "12e2", as proto3-JSON
 * has it. Not "1.5", and nothing past the type's range.
 */
#ifndef VIGIL_CODEC_JSON_NUMBER_H
#define VIGIL_CODEC_JSON_NUMBER_H

#include "base/slice.h"

/* The whole text is one number of RFC 8259. */
bool json_number_valid(struct slice text);

/* text is a valid number. */
MUST_CHECK
bool json_number_i64(struct slice text, int64_t *ret_number);
MUST_CHECK
bool json_number_u64(struct slice text, uint64_t *ret_number);

#endif
