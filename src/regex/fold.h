/* Which characters differ only in case, by Unicode's simple folding. */
#ifndef VIGIL_REGEX_FOLD_H
#define VIGIL_REGEX_FOLD_H

#include "base/slice.h"

/* The first and the last character that has another case. */
enum { REGEX_FOLD_MIN = 0x41, REGEX_FOLD_MAX = 0x1e943 };

/*
 * Rows of the table of folding that concern a range: begin with the first row that does not end
 * before `low`, and continue while there is a row with characters of the range. They fold to
 * the returned range; folding again leads to the next ones, and at last back to the first.
 */
size_t regex_fold_find(uint32_t low);
MUST_CHECK
bool regex_fold_at(size_t row, uint32_t low, uint32_t high, uint32_t *ret_low, uint32_t *ret_high);

#endif
