/*
 * Sets of characters as ranges of code points, while a class is read: added in any order, then
 * sorted and merged. In an arena; one owner, one thread.
 */
#ifndef VIGIL_REGEX_RANGES_H
#define VIGIL_REGEX_RANGES_H

#include "base/memory/arena.h"

enum { REGEX_RUNE_MAX = 0x10ffff };

struct regex_range {
    uint32_t low, high;
};

struct regex_ranges {
    struct arena *arena;
    struct regex_range *at;
    size_t count, room;
    size_t work; /* ranges added so far, also those that were merged */
};

/* All of them: ST_NOMEM. */
MUST_CHECK
enum status regex_ranges_add(struct regex_ranges *ranges, uint32_t low, uint32_t high);
/* With all characters that differ only in case, by Unicode's simple folding. */
MUST_CHECK
enum status regex_ranges_add_folded(struct regex_ranges *ranges, uint32_t low, uint32_t high);
/* The characters of other ranges, which are sorted and merged; or all that are not in them. */
MUST_CHECK
enum status regex_ranges_add_all(struct regex_ranges *ranges, const struct regex_range *other,
                                 size_t count, bool negated);

/* Sorts and merges them. */
void regex_ranges_merge(struct regex_ranges *ranges);
/* Merged ranges become those between them. */
MUST_CHECK
enum status regex_ranges_negate(struct regex_ranges *ranges);

#endif
